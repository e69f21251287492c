package judge

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

var problemCases = []Case{
	{
		ID: "problems/document", Sentence: "A refusal is a problem document: application/problem+json with the URI of its type, a title, and its status if it has one.",
		Source: "draft 2.7; RFC 9457 3; R45", Levels: Levels{May, Must, None, None},
		run: func(e *env) {
			for _, r := range e.refusals() {
				p, err := r.problem()
				if err != "" {
					e.fail("%s: %s: %v", r.of, err, r.answer)
				}
				if u, err := url.Parse(p.Type); err != nil || !u.IsAbs() || p.Title == "" || p.Status != 0 && p.Status != r.answer.Status {
					e.fail("%s: type %q, title %q, status %d in an answer %d", r.of, p.Type, p.Title, p.Status, r.answer.Status)
				}
			}
		},
	},
	{
		ID: "problems/types", Sentence: "Different refusals have problem documents of different types.",
		Source: "RFC 9457 3.1.1; R45", Levels: Levels{May, Must, None, None},
		run: func(e *env) {
			seen := make(map[string]string)
			for _, r := range e.refusals() {
				p, err := r.problem()
				if err != "" {
					e.skip("%s: %s", r.of, err)
				}
				if other := seen[p.Type]; other != "" {
					e.fail("%s and %s both have the type %q", other, r.of, p.Type)
				}
				seen[p.Type] = r.of
			}
		},
	},
	{
		ID: "problems/silent", Sentence: "A refusal contains neither the key nor a part of the request's body.",
		Source: "R45", Levels: Levels{None, Must, None, None},
		run: func(e *env) {
			for _, r := range e.refusals() {
				for name, values := range r.answer.Header {
					for _, secret := range r.secrets {
						if strings.Contains(strings.Join(values, "\n"), secret) {
							e.fail("%s: the field %s has %q", r.of, name, secret)
						}
					}
				}
				for _, secret := range r.secrets {
					if strings.Contains(r.answer.Body, secret) {
						e.fail("%s: the body has %q: %v", r.of, secret, r.answer)
					}
				}
			}
		},
	},
	{
		ID: "problems/no-store", Sentence: "A refusal says Cache-Control: no-store.",
		Source: "RFC 9111 5.2.2.5; R46", Levels: Levels{None, Must, None, None},
		run: func(e *env) {
			for _, r := range e.refusals() {
				if got := r.answer.Values("Cache-Control"); !strings.Contains(strings.Join(got, ","), "no-store") {
					e.fail("%s: Cache-Control is %q", r.of, got)
				}
			}
		},
	},
	{
		ID: "problems/final", Sentence: "A refusal that a retry would meet again has no Retry-After.",
		Source: "RFC 9110 10.2.3; R46", Levels: Levels{None, Must, None, Should},
		run: func(e *env) {
			for _, r := range e.refusals() {
				if after := r.answer.Header.Get("Retry-After"); after != "" && r.answer.Status != http.StatusConflict {
					e.fail("%s: %d with Retry-After: %s", r.of, r.answer.Status, after)
				}
			}
		},
	},
	{
		ID: "problems/marker", Sentence: "A refusal is not marked as a replay.",
		Source: "R15", Levels: Levels{None, Must, Should, Should},
		run: func(e *env) {
			for _, r := range e.refusals() {
				if got := r.answer.Header.Get(replayed); strings.EqualFold(got, "true") {
					e.fail("%s: %s: %s", r.of, replayed, got)
				}
			}
		},
	},
	{
		ID: "problems/codes", Sentence: "A refusal is an error of the protocol: invalid_request with the code idempotency_conflict, idempotency_key_required or idempotency_in_flight.",
		Source: "ACP 6.1, 6.4", Levels: Levels{None, None, None, Must},
		run: func(e *env) {
			for _, r := range e.refusals() {
				if r.code == "" {
					continue
				}
				var body struct{ Type, Code string }
				if err := json.Unmarshal([]byte(r.answer.Body), &body); err != nil || body.Type != "invalid_request" || body.Code != r.code {
					e.fail("%s: answered %v, want the code %s", r.of, r.answer, r.code)
				}
			}
		},
	},
}

// refusal is an answer 4xx of the service itself.
type refusal struct {
	of      string
	code    string // in the Agentic Commerce Protocol; empty: it has none
	answer  *wire.Answer
	secrets []string // of the request
}

// problemDocument has the members of RFC 9457.
type problemDocument struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
}

// problem reads the answer as a problem document, or says why it is none.
func (r *refusal) problem() (p problemDocument, why string) {
	if kind, _, _ := mime.ParseMediaType(r.answer.Header.Get("Content-Type")); kind != "application/problem+json" {
		return p, "the Content-Type is " + r.answer.Header.Get("Content-Type")
	}
	if err := json.Unmarshal([]byte(r.answer.Body), &p); err != nil {
		return p, "the body is no problem document"
	}
	return p, ""
}

// refusals returns refusals by the service, the same ones to all cases of a run: of an
// invalid key, of a key with another body, of an absent key where it is required, and of
// a duplicate of a running request where it is not made to wait.
func (e *env) refusals() []refusal {
	if e.shared.refusals != nil {
		return e.shared.refusals
	}
	var list []refusal
	add := func(of, code string, a *wire.Answer, secrets ...string) {
		if a.Status/100 == 4 {
			list = append(list, refusal{of, code, a, secrets})
		}
	}
	k, secret := uuid(), uuid()
	hide := func(body string) string { return strings.ReplaceAll(body, "judge", secret) }
	add("an invalid key", "", e.ask(e.keyed(e.unkeyed(), `"`+k)), k)
	c := e.post()
	e.first(c)
	key := strings.Trim(c.Value(e.options.Header), `"`)
	add("a key with another body", "idempotency_conflict", e.ask(c.WithBody(hide(e.options.Another))), key, secret)
	if e.facts.have&required != 0 {
		add("an absent key", "idempotency_key_required", e.ask(e.unkeyed().WithBody(hide(e.options.Body))), secret)
	}
	if e.facts.have&delay != 0 {
		if d := e.duplicates(); d.other.Status == http.StatusConflict {
			add("a duplicate of a running request", "idempotency_in_flight", d.other, strings.Trim(d.call.Value(e.options.Header), `"`))
		}
	}
	if len(list) == 0 {
		e.skip("the service refused neither an invalid key nor a key with another body")
	}
	e.shared.refusals = list
	return list
}
