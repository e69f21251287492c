package judge

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// counter reads the counter of runs: a number, or a JSON object with the member
// "executions".
func (e *env) counter() (int, error) {
	u := e.options.Executions
	a, err := e.try(u, e.unkeyed().WithMethod(http.MethodGet).WithBody("").Without("Content-Type").At(u))
	if err != nil {
		return 0, err
	}
	if n, err := strconv.Atoi(strings.TrimSpace(a.Body)); err == nil && a.OK() {
		return n, nil
	}
	var counted struct {
		Executions *int `json:"executions"`
	}
	if err := json.Unmarshal([]byte(a.Body), &counted); err != nil || counted.Executions == nil || !a.OK() {
		return 0, &UnusableError{"the counter of runs answers " + a.String() + `, want a number or {"executions": n}`}
	}
	return *counted.Executions, nil
}

func (e *env) count() int {
	n, err := e.counter()
	e.must(err)
	return n
}

// counts demands that do makes the endpoint run n times, if there is a counter of runs.
func (e *env) counts(n int, do func()) {
	if e.facts.have&counter == 0 {
		do()
		return
	}
	before := e.count()
	do()
	got := e.count() - before
	ended := e.fail
	if got > n && n > 0 {
		ended = e.harm
	}
	if got != n {
		ended("the counter of runs went up by %d, want %d", got, n)
	}
}
