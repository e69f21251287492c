package adaptertest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/protocol"
)

// problem is a problem document (RFC 9457).
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Retryable bool   `json:"retryable"`
}

// wantProblem demands that a, the response to c, is the problem of a code, whole and
// without anything of the request.
func (e *env) wantProblem(a answer, c call, code protocol.Code) {
	e.Helper()
	want := code.Problem()
	var p problem
	if a.status != want.Status || a.value("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &p) != nil {
		e.Fatalf("answered %v\nwant the problem %s, which is %d in application/problem+json", a, code, want.Status)
	}
	if p.Code != string(code) || p.Status != want.Status || p.Retryable != want.Retryable || p.Title == "" || p.Detail == "" {
		e.Fatalf("answered %+v, want the code %s, status %d, retryable %v, a title and a detail", p, code, want.Status, want.Retryable)
	}
	if !strings.HasSuffix(p.Type, string(code)) {
		e.Errorf("the type of %s is %q", code, p.Type)
	}
	if got := a.value("Cache-Control"); got != "no-store" {
		e.Errorf("%s has Cache-Control %q, want no-store", code, got)
	}
	if got := a.values("Retry-After"); want.Retryable != (len(got) == 1) {
		e.Errorf("%s has Retry-After %q, want one: %v", code, got, want.Retryable)
	} else if want.Retryable {
		if seconds, err := strconv.Atoi(got[0]); err != nil || seconds < 1 || seconds > 10 {
			e.Errorf("%s has Retry-After %q, want 1 to 10 seconds", code, got[0])
		}
	}
	e.wantNothingOf(a, c)
}

// wantNothingOf demands that the response repeats no part of the request.
func (e *env) wantNothingOf(a answer, c call) {
	e.Helper()
	secrets := map[string]string{"tenant": c.tenant, "body": c.body}
	for _, key := range c.keys {
		secrets["key"] = strings.Trim(key, "\" \t")
	}
	for _, l := range c.fields {
		secrets[l.name] = l.value
	}
	for _, what := range slices.Sorted(maps.Keys(secrets)) {
		secret := secrets[what]
		if len(secret) < 8 { // too short to be found by anything but chance
			continue
		}
		if strings.Contains(a.body, secret) {
			e.Errorf("the body of a problem has the request's %s: %.200q", what, a.body)
		}
		for _, l := range a.fields {
			if strings.Contains(l.value, secret) {
				e.Errorf("the field %s of a problem has the request's %s: %.200q", l.name, what, l.value)
			}
		}
	}
}
