package combinations

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// The fields of requests and responses.
const (
	versionField = "Api-Version"
	runField     = "X-Run"
	scopeField   = "X-Tenant"
)

func isVersion2(r *protocol.Request) bool { return slices.Contains(r.Header.Values(versionField), "2") }

// request is what a client sends, with what the handler will do about it.
type request struct {
	place    int
	method   string
	key      string // empty: none
	quoted   bool
	scope    string
	version  string
	media    string
	body     string
	unsized  bool          // its length is not declared
	identity bool          // it has a Content-Encoding: identity
	leaves   time.Duration // when its client leaves; 0: it stays
	program  program

	// What came of it. The world's lock guards these.
	process *process
	asked   time.Duration
	sights  []sight // the results of its claims, the latest last
	run     *run    // that its handler made; nil: none
	answer  *answer
}

// answer is a response that reached its client.
type answer struct {
	at       time.Duration
	status   int
	header   http.Header
	body     string
	replayed bool
	code     string // of a problem
}

// again returns the request without what came of it, to be sent.
func (q *request) again() *request {
	c := *q
	c.process, c.sights, c.run, c.answer = nil, nil, nil, nil
	return &c
}

func drawRequest(d dice, keys int) *request {
	q := &request{
		place: d.IntN(places), method: "POST", scope: "one", version: "1", media: "application/json",
		quoted: true, program: drawProgram(d), unsized: d.percent(15), identity: d.percent(5),
	}
	q.key = []string{"a", "b"}[d.IntN(keys)]
	q.body = `{"amount": 1}`
	if d.percent(20) {
		q.body = of(d, `{"amount":1}`, `{"amount": 1000}`)
	}
	if d.percent(5) {
		q.media, q.body = "application/x-www-form-urlencoded", of(d, "amount=1", "amount=1", "amount=1000")
	}
	switch n := d.IntN(100); {
	case n < 4:
		q.body = `{"amount": 1, "note": "` + strings.Repeat("n", 60) + `"}`
	case n < 6:
		q.body = of(d, `{"note": "", "amount": 1}`, `{"amount": 1, "note": [{}]}`)
	case n < 10: // a decoder leaves the line's end to the next reader
		q.body = of(d, `{"amount": 1,   `, `{"amount": 1000,`) + strings.Repeat(" ", 480) + "\"n\": 1}\n"
	}
	switch n := d.IntN(100); {
	case n < 3:
		q.key = ""
	case n < 6:
		q.method = "PUT"
	case n < 8:
		q.scope = ""
	case n < 18:
		q.scope = "two"
	case n < 30:
		q.version = "2"
	case n < 34:
		q.quoted = false
	case n < 42:
		q.leaves = of(d, 50*time.Millisecond, time.Second)
	}
	return q
}

// String returns the request without the parts that are as usual.
func (q *request) String() string {
	return unusual(fmt.Sprintf("%s key=%q of %q %s", q.method, q.key, q.scope, q.body),
		part{q.version == "2", "version 2"},
		part{!q.quoted, "key not quoted"},
		part{q.unsized, "length unknown"},
		part{q.identity, "coding identity"},
		part{q.leaves > 0, fmt.Sprintf("its client leaves after %v", q.leaves)},
	) + "; " + q.program.String()
}

// part is a part of a description, which is shown only where it is unusual.
type part struct {
	unusual bool
	text    string
}

// unusual returns text and the parts that are unusual.
func unusual(text string, parts ...part) string {
	list := []string{text}
	for _, p := range parts {
		if p.unusual {
			list = append(list, p.text)
		}
	}
	return strings.Join(list, ", ")
}

// http returns the request as a server sees it.
func (q *request) http(ctx context.Context) *http.Request {
	r := httptest.NewRequestWithContext(ctx, q.method, "/orders", strings.NewReader(q.body))
	r.Header.Set("Content-Type", q.media)
	r.Header.Set(versionField, q.version)
	r.Header.Set(scopeField, q.scope)
	switch {
	case q.quoted && q.key != "":
		r.Header.Set("Idempotency-Key", `"`+q.key+`"`)
	case q.key != "":
		r.Header.Set("Idempotency-Key", q.key)
	}
	if q.identity {
		r.Header.Set("Content-Encoding", "identity")
	}
	if q.unsized {
		r.ContentLength = -1
	}
	return r
}

// keyed reports whether a policy concerns the request.
func (q *request) keyed(policy *protocol.Config) bool {
	return q.key != "" && (slices.Contains(policy.Methods, q.method) || policy.Methods == nil && q.method == "POST") &&
		(policy.Skip == nil || q.version != "2")
}

// id returns the operation of the request under a policy.
func (q *request) id(policy *protocol.Config) store.ID {
	return store.DeriveID(q.scope, policy.Endpoint, q.key)
}

// content returns what the request asks for, as far as a policy compares it.
func (q *request) content(s *settings, policy *protocol.Config) string {
	fp := q.fingerprint(s, policy)
	list := []string{hex.EncodeToString(fp[:])}
	for _, name := range policy.Fingerprint.Headers {
		list = append(list, name, q.http(context.Background()).Header.Get(name))
	}
	return strings.Join(list, " ")
}

// fingerprint returns the fingerprint of the whole request, without the fields that a
// policy adds.
func (q *request) fingerprint(s *settings, policy *protocol.Config) store.Fingerprint {
	digest := policy.Fingerprint.Func
	if digest == nil {
		digest = protocol.DefaultFingerprint
	}
	r, body := q.http(context.Background()), q.body
	if q.media != "application/json" && s.layer == "parses the form" {
		values, _ := url.ParseQuery(q.body)
		body = "form " + values.Encode()
	}
	if len(policy.Fingerprint.Omit) > 0 && q.media == "application/json" {
		body = withoutNote(body)
	}
	fp, _ := digest(&protocol.Request{Method: q.method, Path: "/orders", Header: r.Header}, q.key, []byte(body))
	return fp
}

// withoutNote returns a JSON object without its note, the part that a policy may omit.
func withoutNote(body string) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		panic(err) // of a body that was drawn
	}
	delete(members, "note")
	rest, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(rest)
}

// answerOf reads a response.
func answerOf(rec *httptest.ResponseRecorder, marker string, at time.Duration) *answer {
	a := &answer{at: at, status: rec.Code, header: rec.Header(), body: rec.Body.String()}
	if a.header.Get("Content-Encoding") == "gzip" {
		a.body = string(uncompressed(rec.Body.Bytes()))
	}
	a.replayed = a.header.Get(marker) == "true"
	var problem struct{ Code string }
	if json.Unmarshal([]byte(a.body), &problem) == nil {
		a.code = problem.Code
	}
	return a
}
