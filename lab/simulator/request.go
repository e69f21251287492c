package simulator

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	place   int
	method  string
	key     string // empty: none
	where   place  // its key is
	quoted  bool
	scope   string
	version string
	body    string
	leaves  time.Duration // when its client leaves; 0: it stays
	retries int           // of its client
	program program

	// What came of it. The world's lock guards these.
	process *process
	asked   time.Duration
	sights  []sight // the results of its claims, the latest last
	run     *run    // that its handler made; nil: none
	answer  *answer
}

// place is where a request has its key.
type place string

const (
	inHeader place = ""
	inBody   place = "in the body"
	inBoth   place = "in header and body"
	differs  place = "in the header, and another in the body"
	inQuery  place = "in the query"
)

// answer is a response that reached its client.
type answer struct {
	at       time.Duration
	status   int
	header   http.Header
	body     string
	replayed bool
	code     string // of a problem
}

// again returns the request without its result, to be sent again.
func (q *request) again() *request {
	c := *q
	c.process, c.sights, c.run, c.answer = nil, nil, nil, nil
	return &c
}

func drawRequest(d dice, keys int) *request {
	q := &request{
		place: d.IntN(places), method: "POST", scope: "one", version: "1",
		quoted: true, retries: of(d, 0, 0, 3, 8), program: drawProgram(d),
	}
	q.key = []string{"a", "b"}[d.IntN(keys)]
	q.body = `{"amount": 1}`
	if d.percent(20) {
		q.body = of(d, `{"amount":1}`, `{"amount": 1000}`)
	}
	if d.percent(4) {
		q.body = `{"amount": 1, "note": "` + strings.Repeat("n", 60) + `"}`
	}
	if d.percent(20) {
		q.where = of(d, inBody, inBody, inBoth, differs, inQuery)
		switch q.where {
		case inBody, inBoth:
			q.body = `{"key": "` + q.key + `", ` + q.body[1:]
		case differs:
			q.body = `{"key": "other", ` + q.body[1:]
		default:
		}
	}
	switch n := d.IntN(100); {
	case n < 3 && q.where == inHeader:
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
	return fmt.Sprintf("%s key=%q of %q %s", q.method, q.key, q.scope, q.body) +
		when(q.version == "2", "version 2") + when(q.where != inHeader, "key "+string(q.where)) + when(!q.quoted, "key not quoted") +
		when(q.retries > 0, fmt.Sprintf("%d retries", q.retries)) + when(q.leaves > 0, fmt.Sprintf("its client leaves after %v", q.leaves)) +
		"; " + q.program.String()
}

// when returns a part of a description that is shown only where it is unusual.
func when(unusual bool, text string) string {
	if unusual {
		return ", " + text
	}
	return ""
}

// http returns the request as a server sees it.
func (q *request) http(ctx context.Context) *http.Request {
	r := httptest.NewRequestWithContext(ctx, q.method, "/orders?"+q.query(), strings.NewReader(q.body))
	r.Header = q.fields()
	return r
}

// fields returns the header of the request.
func (q *request) fields() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, versionField: {q.version}, scopeField: {q.scope}}
	switch key := q.header(); {
	case q.quoted && key != "":
		h.Set("Idempotency-Key", `"`+key+`"`)
	case key != "":
		h.Set("Idempotency-Key", key)
	}
	return h
}

// header returns the key in the header.
func (q *request) header() string {
	if slices.Contains([]place{inHeader, inBoth, differs}, q.where) {
		return q.key
	}
	return ""
}

// query returns the query of the request.
func (q *request) query() string {
	if q.where == inQuery {
		return "key=" + q.key
	}
	return ""
}

// keyUnder returns the key that a policy finds, empty if there is none, and whether it
// finds two that differ.
func (q *request) keyUnder(c *protocol.Config) (key string, both bool) {
	var own string
	switch source := c.Key.String(); {
	case c.Key.Param() != "" && q.where == inQuery,
		source == "field /key of the request body" && (q.where == inBody || q.where == inBoth):
		own = q.key
	case source == "field /key of the request body" && q.where == differs:
		own = "other"
	}
	return cmp.Or(q.header(), own), own != "" && q.header() != "" && own != q.header()
}

// concerned reports whether a policy looks for a key in the request.
func (q *request) concerned(policy *protocol.Config) bool {
	return (slices.Contains(policy.Methods, q.method) || policy.Methods == nil && q.method == "POST") && (policy.Skip == nil || q.version != "2")
}

// keyed reports whether the request has a key under a policy.
func (q *request) keyed(policy *protocol.Config) bool {
	key, _ := q.keyUnder(policy)
	return key != "" && q.concerned(policy)
}

// id returns the operation of the request under a policy.
func (q *request) id(policy *protocol.Config) store.ID {
	key, _ := q.keyUnder(policy)
	return store.DeriveID(q.scope, policy.Endpoint, key)
}

// content returns what the request asks for, as far as a policy compares it.
func (q *request) content(policy *protocol.Config) string {
	digest := policy.Fingerprint.Func
	if digest == nil {
		digest = protocol.DefaultFingerprint
	}
	key, _ := q.keyUnder(policy)
	fp, _ := digest(&protocol.Request{Method: q.method, Path: "/orders", RawQuery: q.query(), Header: q.fields()}, key, []byte(q.body))
	list := []string{hex.EncodeToString(fp[:])}
	for _, name := range policy.Fingerprint.Headers {
		list = append(list, name, q.fields().Get(name))
	}
	return strings.Join(list, " ")
}

// answerOf reads a response.
func answerOf(rec *httptest.ResponseRecorder, at time.Duration) *answer {
	a := &answer{at: at, status: rec.Code, header: rec.Header(), body: rec.Body.String()}
	a.replayed = a.header.Get(protocol.FieldReplayed) == "true"
	var problem struct{ Code string }
	if json.Unmarshal([]byte(a.body), &problem) == nil {
		a.code = problem.Code
	}
	return a
}
