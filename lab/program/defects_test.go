package program

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// defect is a mistake of a service, and the cases that it breaks.
type defect struct {
	breaks  string
	profile string // reprise, if it is empty; the policy is one that meets it
	config  func(*protocol.Config)
	wire    func(read []byte) []byte
	outside layer // of the guard
	inside  layer
}

// layer is a middleware.
type layer func(w http.ResponseWriter, r *http.Request, next http.Handler)

func (l layer) around(next http.Handler) http.Handler {
	if l == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l(w, r, next) })
}

type (
	request = *http.Request
	answer  = *httptest.ResponseRecorder
	config  = *protocol.Config
)

var defects = map[string]defect{
	"correct": {config: func(c config) { c.Retention = judgedRetention }},
	"no keys": {
		breaks: "key/name key/quoted key/bare key/forms key/escapes key/parameters key/spaces key/255 key/long key/malformed key/empty key/lines key/control key/ascii " +
			"replay/once replay/status replay/body replay/empty replay/type replay/fields replay/coding replay/cookies replay/date replay/marker replay/framing replay/conditions " +
			"binding/refused binding/422 binding/query binding/headers binding/framing binding/running " +
			"concurrency/once concurrency/duplicates concurrency/after concurrency/disconnect methods/patch methods/bound scopes/independent scopes/payload " +
			"failures/4xx large/answer large/huge large/request large/limit framing/both framing/short framing/pipelined framing/expect retries/lost retries/cut retries/request",
		outside: requests(func(r request) { r.Header.Del(keyField) }),
	},

	"one key for all that have none": {breaks: "presence/optional presence/marker key/trailer", outside: requests(func(r request) {
		if len(r.Header[keyField]) == 0 && r.Method == http.MethodPost {
			r.Header.Set(keyField, `"none"`)
		}
	})},
	"refusals without documentation": {breaks: "presence/link", config: required, outside: refusals(func(r request, a answer) {
		if len(r.Header[keyField]) == 0 {
			a.Header().Del("Link")
			a.Body = bytes.NewBufferString(`{"type":"tag:example.com,2026:no-key","title":"no key"}`)
		}
	})},
	"428 for an absent key": {breaks: "presence/missing presence/link", config: required, outside: refusedWith(http.StatusBadRequest, http.StatusPreconditionRequired)},
	"first runs are marked": {breaks: "presence/marker", outside: answers(inCase(http.StatusCreated, set(markerField, "true")))},

	"keys in lower case": {breaks: "key/case", outside: keys(func(key string) string {
		if strings.Contains(key, ";") {
			return key
		}
		return strings.ToLower(key)
	})},
	"keys cut at 200 bytes":          {breaks: "key/255", outside: keys(cut(250, 260))},
	"long keys cut":                  {breaks: "key/long", outside: keys(cut(1000, 1<<20))},
	"parameters are part of the key": {breaks: "key/parameters", outside: keys(replace(`";a=1;b="x"`, ` a=1"`))},
	"keys as file names":             {breaks: "key/distinct", outside: keys(replace(":", "_", "+", "_", "*", "_"))},
	"tabs in keys":                   {breaks: "key/control", outside: keys(replace("\t", " "))},
	"any bytes in keys": {breaks: "key/ascii", outside: keys(func(key string) string {
		return strings.Map(func(r rune) rune {
			if r > 0x7f {
				return '_'
			}
			return r
		}, key)
	})},
	"the first of several keys": {breaks: "key/malformed", outside: keys(func(key string) string { return strings.Split(key, ", ")[0] })},
	"the first of several lines": {breaks: "key/lines", outside: requests(func(r request) {
		if lines := r.Header[keyField]; len(lines) > 1 {
			r.Header[keyField] = lines[:1]
		}
	})},
	"an empty key is none": {breaks: "key/empty", outside: requests(func(r request) {
		if lines := r.Header[keyField]; len(lines) == 1 && (lines[0] == "" || lines[0] == `""`) {
			r.Header.Del(keyField)
		}
	})},
	"quoted keys only": {breaks: "key/bare", config: func(c config) { c.KeyMode = protocol.Strict }},
	"bare keys only": {breaks: "key/quoted", profile: "draft-07", outside: keys(func(key string) string {
		if strings.HasPrefix(key, `"`) {
			return "\x7f" // which is refused
		}
		return key
	})},
	"trailers are fields": {breaks: "key/trailer", outside: requests(func(r request) {
		if _, err := readBody(r); err == nil && r.Trailer.Get(keyField) != "" {
			r.Header.Set(keyField, r.Trailer.Get(keyField))
		}
	})},

	"replays are not marked": {breaks: "replay/marker", outside: replays(set(markerField, ""))},
	"replays of text": {breaks: "replay/body", outside: replays(func(_ request, a answer) {
		if a.Body.Len() <= 512 { // others look at the rest
			a.Body = bytes.NewBuffer(bytes.ReplaceAll(a.Body.Bytes(), []byte("\r\n"), []byte("\n")))
		}
	})},
	"replays without coding": {breaks: "replay/coding", outside: replays(set("Content-Encoding", ""))},
	"replays without type": {breaks: "replay/type", outside: replays(func(_ request, a answer) {
		if a.Header().Get("Content-Type") != "" {
			a.Header().Set("Content-Type", "text/plain")
		}
	})},
	"replays with one line a field": {breaks: "replay/fields", outside: replays(func(_ request, a answer) {
		for name, values := range a.Header() {
			a.Header()[name] = values[:min(1, len(values))]
		}
	})},
	"replays of redirects":            {breaks: "replay/status", outside: replays(inCase(http.StatusSeeOther, func(_ request, a answer) { a.Code = http.StatusFound }))},
	"replays with a type for nothing": {breaks: "replay/empty", outside: replays(inCase(http.StatusNoContent, set("Content-Type", "text/plain")))},
	"replays with the first date":     {breaks: "replay/date", outside: repeats(func(first, again answer) { again.Header().Set("Date", first.Header().Get("Date")) })},
	"replays with cookies":            {breaks: "replay/cookies", outside: repeats(func(first, again answer) { again.Header()["Set-Cookie"] = first.Header()["Set-Cookie"] })},
	"replays in ranges": {breaks: "replay/conditions", outside: replays(func(r request, a answer) {
		if r.Header.Get("Range") != "" {
			a.Body.Truncate(1)
		}
	})},
	"large replays are cut":           {breaks: "large/answer", outside: replays(func(_ request, a answer) { a.Body.Truncate(min(a.Body.Len(), 64<<10)) })},
	"very large answers are not kept": {breaks: "large/huge", inside: decide(`"body_size":4194304`, protocol.Release)},

	"any body": {
		breaks: "binding/refused binding/422 binding/query binding/running methods/bound large/request",
		config: func(c config) { c.Fingerprint.Func = protocol.NoFingerprint },
	},
	"any query": {breaks: "binding/query", outside: requests(func(r request) { r.URL.RawQuery, r.RequestURI = "", r.URL.Path })},
	"any method": {breaks: "methods/bound", outside: requests(func(r request) {
		if r.Method == http.MethodPatch {
			r.Method = http.MethodPost
		}
	})},
	"the end of a large body":        {breaks: "large/request", outside: cutBody(200<<10, 1<<20)},
	"the end of a very large body":   {breaks: "large/limit", outside: cutBody(1<<20, 1<<30)},
	"traces are part of the request": {breaks: "binding/headers", config: func(c config) { c.Fingerprint.Headers = []string{"Traceparent"} }},
	"chunks are part of the request": {
		breaks: "binding/framing", config: func(c config) { c.Fingerprint.Headers = []string{"X-Coding"} },
		outside: requests(func(r request) { r.Header.Set("X-Coding", strings.Join(r.TransferEncoding, ",")) }),
	},
	"400 for another body": {breaks: "binding/422", outside: refusedWith(http.StatusUnprocessableEntity, http.StatusBadRequest)},
	"one memory for all endpoints": {breaks: "binding/endpoint methods/safe", profile: "acp", outside: repeats(func(first, again answer) {
		if first.Code == again.Code {
			again.Body = first.Body
			again.Header().Set(adaptertest.ExecHeader, first.Header().Get(adaptertest.ExecHeader))
		}
	})},
	"null is absent": {breaks: "binding/null", profile: "acp", outside: requests(func(r request) {
		if body, err := readBody(r); err == nil {
			setBody(r, bytes.Replace(body, []byte(`,"judge_null":null`), nil, 1))
		}
	})},
	"refused requests run": {breaks: "binding/refused binding/422", outside: runRefused},

	"one request at a time": {breaks: "concurrency/others", inside: func(w http.ResponseWriter, r request, next http.Handler) {
		oneAtATime.Lock()
		defer oneAtATime.Unlock()
		next.ServeHTTP(w, r)
	}},
	"409 for a while": {breaks: "concurrency/retry-after", outside: answers(inCase(http.StatusConflict, set("Retry-After", "")))},
	"duplicates wait": {breaks: "concurrency/409", profile: "draft-07", config: func(c config) { c.Wait = time.Minute }},

	"invalid keys on GET": {breaks: "methods/malformed", outside: answers(func(r request, a answer) {
		if r.Method == http.MethodGet && strings.Count(r.Header.Get(keyField), `"`) == 1 {
			a.Code = http.StatusBadRequest
		}
	})},
	"running keys are shared": {breaks: "scopes/running", outside: otherScopes(func(running bool) bool { return running })},
	"known keys take longer": {breaks: "timing/principals", outside: otherScopes(func(bool) bool {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the defect itself
		return false
	})},

	"500 is kept":     {breaks: "failures/again", profile: "acp", config: func(c config) { c.Preset = reprise.AtMostOnce }},
	"429 is kept":     {breaks: "failures/unprocessed", inside: decide(`"status":429`, protocol.Keep)},
	"404 is not kept": {breaks: "failures/4xx", inside: decide(`"status":404`, protocol.Release)},
	"500 runs for ever": {breaks: "failures/decided", outside: repeats(func(first, again answer) {
		if first.Code == http.StatusInternalServerError {
			again.Code = http.StatusConflict
		}
	})},
	"cut answers are whole": {
		breaks: "failures/cut",
		outside: func(w http.ResponseWriter, r request, next http.Handler) {
			next.ServeHTTP(w, r)
			if strings.Contains(r.Header.Get(adaptertest.ProgramHeader), `"abort"`) {
				panic(http.ErrAbortHandler)
			}
		},
		inside: func(w http.ResponseWriter, r request, next http.Handler) {
			defer func() { _ = recover() }()
			next.ServeHTTP(w, r)
		},
	},

	"folded lines are fields":  {breaks: "framing/folded", wire: rewrite("\r\n\t", "\r\n")},
	"lengths with a sign":      {breaks: "framing/lengths", wire: rewrite("Content-Length: +", "Content-Length: ")},
	"unknown codings are none": {breaks: "framing/coding", wire: rewrite(": xchunked", ": chunked")},
	"names with spaces":        {breaks: "framing/names", wire: rewrite(keyField+" :", keyField+":")},
	"bodies that broke off": {breaks: "framing/short", outside: requests(func(r request) {
		if len(r.TransferEncoding) > 0 {
			body, _ := io.ReadAll(r.Body) // and the error is ignored
			setBody(r, body)
			r.TransferEncoding = nil
		}
	})},

	"plain refusals": {breaks: "problems/document", outside: refusals(set("Content-Type", "application/json"))},
	"one type for all refusals": {breaks: "problems/types", outside: refusals(func(_ request, a answer) {
		_, rest, _ := strings.Cut(a.Body.String(), `,`)
		a.Body = bytes.NewBufferString(`{"type":"https://example.com/problem",` + rest)
	})},
	"refusals with the key": {breaks: "problems/silent", outside: refusals(func(r request, a answer) { a.Header().Set(keyField, r.Header.Get(keyField)) })},
	"refusals for caches":   {breaks: "problems/no-store", outside: refusals(set("Cache-Control", "max-age=60"))},
	"refusals to try again": {breaks: "problems/final", outside: refusals(set("Retry-After", "1"))},
	"marked refusals":       {breaks: "problems/marker", outside: refusals(set(markerField, "true"))},

	"a short memory": {breaks: "retention/kept", config: func(c config) { c.Retention = judgedRetention * 7 / 12 }},
	"a long memory":  {breaks: "retention/ends", config: func(c config) { c.Retention = time.Hour }},
}

// The fields of the protocol.
const (
	keyField    = "Idempotency-Key"
	markerField = "Idempotent-Replayed"
)

func required(c config) { c.Required = true }

// rewrite changes the bytes that a server reads.
func rewrite(from, to string) func([]byte) []byte {
	return func(read []byte) []byte { return bytes.ReplaceAll(read, []byte(from), []byte(to)) }
}

// replace changes a key.
func replace(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }

// cut cuts a key of a length between the two.
func cut(least, most int) func(string) string {
	return func(key string) string {
		if len(key) < least || len(key) > most {
			return key
		}
		return key[:200] + `"`
	}
}

// requests changes each request.
func requests(change func(request)) layer {
	return func(w http.ResponseWriter, r request, next http.Handler) {
		change(r)
		next.ServeHTTP(w, r)
	}
}

// keys changes the key of each request that has one.
func keys(change func(string) string) layer {
	return requests(func(r request) {
		if lines := r.Header[keyField]; len(lines) == 1 {
			r.Header[keyField] = []string{change(lines[0])}
		}
	})
}

// decide takes the decision of a handler about runs whose program has a text.
func decide(text string, decision func(context.Context) bool) layer {
	return requests(func(r request) {
		if strings.Contains(r.Header.Get(adaptertest.ProgramHeader), text) {
			decision(r.Context())
		}
	})
}

// readBody reads the body, and leaves one that fails again where it failed.
func readBody(r request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	return body, err
}

func setBody(r request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// cutBody drops the second half of a body of a size between the two.
func cutBody(least, most int64) layer {
	return requests(func(r request) {
		if r.ContentLength < least || r.ContentLength > most {
			return
		}
		if body, err := readBody(r); err == nil {
			setBody(r, body[:least/2])
		}
	})
}

// answers changes each answer that was not cut short.
func answers(change func(request, answer)) layer {
	return func(w http.ResponseWriter, r request, next http.Handler) {
		a := httptest.NewRecorder()
		next.ServeHTTP(a, r)
		change(r, a)
		write(w, a)
	}
}

func write(w http.ResponseWriter, a answer) {
	maps.Copy(w.Header(), a.Header())
	w.Header().Del("Content-Length")
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body.Bytes())
}

// inCase makes a change to the answers with a status.
func inCase(status int, change func(request, answer)) func(request, answer) {
	return func(r request, a answer) {
		if a.Code == status {
			change(r, a)
		}
	}
}

// set makes a field of the answer a value, or removes it if that is empty.
func set(name, value string) func(request, answer) {
	return func(_ request, a answer) {
		if a.Header().Set(name, value); value == "" {
			a.Header().Del(name)
		}
	}
}

func replays(change func(request, answer)) layer {
	return answers(func(r request, a answer) {
		if a.Header().Get(markerField) != "" {
			change(r, a)
		}
	})
}

func refusals(change func(request, answer)) layer {
	return answers(func(r request, a answer) {
		if a.Header().Get("Content-Type") == "application/problem+json" && a.Code != http.StatusConflict {
			change(r, a)
		}
	})
}

// refusedWith changes the status of refusals. For a 400 it is that of an absent key.
func refusedWith(from, to int) layer {
	return refusals(func(r request, a answer) {
		if a.Code == from && (from != http.StatusBadRequest || len(r.Header[keyField]) == 0) {
			a.Code = to
			a.Body = bytes.NewBuffer(bytes.Replace(a.Body.Bytes(), fmt.Appendf(nil, `,"status":%d`, from), nil, 1))
		}
	})
}

// repeats changes each later answer for a key with the first one.
func repeats(change func(first, again answer)) layer {
	var mu sync.Mutex
	firsts := make(map[string]answer)
	return answers(func(r request, a answer) {
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get(adaptertest.TenantHeader) + " " + r.Header.Get(keyField)
		if first := firsts[key]; first != nil {
			change(first, a)
			return
		}
		if a.Header().Get("Date") == "" {
			a.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		}
		firsts[key] = a
	})
}

var oneAtATime sync.Mutex

// otherScopes asks refuses about each key that another scope used before, and refuses the
// request as one in progress if it says so.
func otherScopes(refuses func(running bool) bool) layer {
	type use struct {
		scope   string
		running int
	}
	var mu sync.Mutex
	uses := make(map[string]*use)
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		key, scope := r.Header.Get(keyField), r.Header.Get(adaptertest.TenantHeader)
		mu.Lock()
		first := uses[key]
		if first == nil {
			first = &use{scope: scope}
			uses[key] = first
		}
		known, running := key != "" && first.scope != scope, first.running > 0
		first.running++
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			first.running--
		}()
		if known && refuses(running) {
			w.WriteHeader(http.StatusConflict)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// runRefused runs the operation, unseen, for requests that are refused for their body.
func runRefused(w http.ResponseWriter, r request, next http.Handler) {
	a := httptest.NewRecorder()
	next.ServeHTTP(a, r)
	if a.Code == http.StatusUnprocessableEntity {
		unkeyed := r.Clone(r.Context())
		unkeyed.Header.Del(keyField)
		next.ServeHTTP(httptest.NewRecorder(), unkeyed)
	}
	write(w, a)
}
