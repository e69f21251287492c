package harness

import (
	"fmt"
	"testing"
)

// A verdict is a [testing.TB] that keeps its failures.
type verdict struct {
	testing.TB

	failures []string
}

func (v *verdict) Helper() {}

func (v *verdict) Errorf(format string, args ...any) {
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}

// Fatalf ends the check by a panic, which judge recovers from.
func (v *verdict) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	panic(v)
}

// judge returns the number of failures of a check.
func judge(t *testing.T, app *App, check func()) (failures int) {
	t.Helper()
	v := &verdict{TB: t}
	outer := app.tb
	app.tb = v
	defer func() {
		app.tb, failures = outer, len(v.failures)
		if p := recover(); p != nil && p != v {
			panic(p)
		}
	}()
	check()
	return failures
}
