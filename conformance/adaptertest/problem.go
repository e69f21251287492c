package adaptertest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/protocol"
)

// problemKind is the part of a problem that a client may rely on: R45 and R46.
type problemKind struct {
	status     int
	retryable  bool
	retryAfter bool
}

var problemKinds = map[protocol.Code]problemKind{
	protocol.CodeKeyMissing:        {status: 400},
	protocol.CodeKeyInvalid:        {status: 400},
	protocol.CodeRequestInvalid:    {status: 400},
	protocol.CodeScopeMissing:      {status: 403},
	protocol.CodeInProgress:        {status: 409, retryable: true, retryAfter: true},
	protocol.CodeOutcomeUnknown:    {status: 409},
	protocol.CodeResultUnavailable: {status: 409},
	protocol.CodeResultExpired:     {status: 409},
	protocol.CodeRequestTooLarge:   {status: 413},
	protocol.CodeKeyReused:         {status: 422},
	protocol.CodeStoreUnavailable:  {status: 503, retryable: true, retryAfter: true},
	protocol.CodeNotApplied:        {status: 503, retryable: true, retryAfter: true},
	protocol.CodeRecordCorrupt:     {status: 500},
	protocol.CodeResponseTooLarge:  {status: 500},
	protocol.CodeInternalError:     {status: 500},
}

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
func (e *env) wantProblem(a answer, c call, code protocol.Code) problem {
	e.Helper()
	kind := problemKinds[code]
	var p problem
	if a.status != kind.status || a.value("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &p) != nil {
		e.Fatalf("answered %v\nwant the problem %s, which is %d in application/problem+json", a, code, kind.status)
	}
	if p.Code != string(code) || p.Status != kind.status || p.Retryable != kind.retryable || p.Title == "" || p.Detail == "" {
		e.Fatalf("answered %+v, want the code %s, status %d, retryable %v, a title and a detail", p, code, kind.status, kind.retryable)
	}
	if !strings.HasSuffix(p.Type, string(code)) {
		e.Errorf("the type of %s is %q", code, p.Type)
	}
	if got := a.value("Cache-Control"); got != "no-store" {
		e.Errorf("%s has Cache-Control %q, want no-store", code, got)
	}
	if got := a.values("Retry-After"); kind.retryAfter != (len(got) == 1) {
		e.Errorf("%s has Retry-After %q, want one: %v", code, got, kind.retryAfter)
	} else if kind.retryAfter {
		if seconds, err := strconv.Atoi(got[0]); err != nil || seconds < 1 || seconds > 10 {
			e.Errorf("%s has Retry-After %q, want 1 to 10 seconds", code, got[0])
		}
	}
	e.wantNothingOf(a, c)
	return p
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
