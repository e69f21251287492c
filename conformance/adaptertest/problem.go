package adaptertest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/protocol"
)

// wantProblem demands that a, the response to c, is the problem of a code, without
// anything of the request. Its text is that of core/protocol, which tests it.
func (e *env) wantProblem(a answer, c call, code protocol.Code) {
	e.Helper()
	want := code.Problem()
	var document struct{ Code protocol.Code }
	if a.status != want.Status || a.value("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &document) != nil || document.Code != code {
		e.Fatalf("answered %v\nwant the problem %s, which is %d in application/problem+json", a, code, want.Status)
	}
	if got := a.value("Cache-Control"); got != "no-store" {
		e.Errorf("%s has Cache-Control %q, want no-store", code, got)
	}
	if got := a.values("Retry-After"); want.Retryable != (len(got) == 1) {
		e.Errorf("%s has Retry-After %q, want one: %v", code, got, want.Retryable)
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
