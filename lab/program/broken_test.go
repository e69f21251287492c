package program

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// keepsOpen is the one case that a server of net/http does not meet, with any
// handler: it reads a request with a length and a transfer coding by the coding, and
// keeps the connection open.
const keepsOpen = "framing/both"

// A broken service is a correct one with one defect, and the judge names the rule that it
// breaks.
func TestJudgeNamesTheDefectOfABrokenService(t *testing.T) {
	t.Parallel()
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profile := cmp.Or(d.profile, "reprise")
			c := profilePolicies[profile].policy
			if d.config != nil {
				d.config(&c)
			}
			var outside, inside wrap
			if d.outside != nil {
				outside = d.outside()
			}
			if d.inside != nil {
				inside = d.inside()
			}
			want := strings.Fields(d.breaks)
			base := judgedServer(t, c, outside, inside, d.wire)
			args := append(cooperation(base), "--profile", profile, "--other", base+"/t/other")
			if strings.Contains(d.breaks, "retention/") || d.breaks == "" {
				args = append(args, "--retention", judgedRetention.String())
			}
			whole := !testing.Short() || d.breaks == ""
			if !whole {
				args = append(args, "--only", groups(want))
			}
			if (whole || strings.Contains(d.breaks, "framing/")) && !slices.Contains(want, keepsOpen) {
				want = append(want, keepsOpen)
			}
			j := judge(t, args...)
			slices.SortFunc(want, func(a, b string) int { return cmp.Compare(j.index(a), j.index(b)) })
			j.notMet(t, want...)
		})
	}
}

// groups returns the groups of cases for --only.
func groups(ids []string) string {
	var names []string
	for _, id := range ids {
		group, _, _ := strings.Cut(id, "/")
		names = append(names, group)
	}
	return strings.Join(names, ",")
}

// index returns the place of a case in the report.
func (j *judgement) index(id string) int {
	return slices.IndexFunc(j.Cases, func(c judgedCase) bool { return c.ID == id })
}

// defect is a mistake of a service, and the cases that it breaks.
type defect struct {
	breaks  string
	profile string // reprise, if it is empty; the policy is one that meets it
	config  func(*protocol.Config)
	wire    func(read []byte) int // changes bytes that the server reads, and returns their number
	outside func() wrap           // of the guard
	inside  func() wrap
}

var defects = map[string]defect{
	"correct": {config: func(c *protocol.Config) { c.Retention = judgedRetention }},

	"no keys": {
		breaks: "key/name key/quoted key/bare key/forms key/escapes key/parameters key/spaces key/255 key/long key/malformed key/empty key/lines key/control key/ascii " +
			"replay/once replay/status replay/body replay/empty replay/type replay/fields replay/coding replay/cookies replay/date replay/marker replay/framing replay/conditions " +
			"binding/refused binding/422 binding/query binding/headers binding/framing binding/running " +
			"concurrency/once concurrency/duplicates concurrency/after concurrency/disconnect " +
			"methods/patch methods/bound " +
			"scopes/independent scopes/payload " +
			"failures/4xx " +
			"large/answer large/huge large/request large/limit " +
			"framing/both framing/short framing/pipelined framing/expect " +
			"retries/lost retries/cut retries/request",
		outside: changeRequest(func(r *http.Request) { r.Header.Del(keyField) }),
	},

	"one key for all that have none": {
		breaks: "presence/optional presence/marker key/trailer",
		outside: changeRequest(func(r *http.Request) {
			if len(r.Header[keyField]) == 0 && r.Method == http.MethodPost {
				r.Header.Set(keyField, `"none"`)
			}
		}),
	},
	"refusals without documentation": {
		breaks: "presence/link",
		config: func(c *protocol.Config) { c.Required = true },
		outside: changeRefusal(func(r *http.Request, a *httptest.ResponseRecorder) {
			if len(r.Header[keyField]) == 0 {
				a.Header().Del("Link")
				a.Body = bytes.NewBufferString(`{"type":"tag:example.com,2026:no-key","title":"no key"}`)
			}
		}),
	},
	"428 for an absent key": {
		breaks: "presence/missing presence/link",
		config: func(c *protocol.Config) { c.Required = true },
		outside: changeRefusal(func(r *http.Request, a *httptest.ResponseRecorder) {
			if len(r.Header[keyField]) == 0 {
				a.Code = http.StatusPreconditionRequired
				a.Body = bytes.NewBuffer(bytes.Replace(a.Body.Bytes(), []byte(`,"status":400`), nil, 1))
			}
		}),
	},
	"one memory for all endpoints": {breaks: "binding/endpoint methods/safe", profile: "acp", outside: withFirst(func(first, again *httptest.ResponseRecorder) {
		if first.Code == again.Code {
			again.Body = first.Body
			again.Header().Set(adaptertest.ExecHeader, first.Header().Get(adaptertest.ExecHeader))
		}
	})},
	"null is absent": {breaks: "binding/null", profile: "acp", outside: changeRequest(func(r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body = bytes.Replace(body, []byte(`,"judge_null":null`), nil, 1)
			r.ContentLength = int64(len(body))
		}
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body)) // which fails again where it failed
	})},
	"500 is kept":     {breaks: "failures/again", profile: "acp", config: func(c *protocol.Config) { c.Preset = reprise.AtMostOnce }},
	"duplicates wait": {breaks: "concurrency/409", profile: "draft-07", config: func(c *protocol.Config) { c.Wait = time.Minute }},
	"cut answers are whole": {
		breaks: "failures/cut",
		outside: func() wrap {
			return func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(w, r)
					if strings.Contains(r.Header.Get(adaptertest.ProgramHeader), `"abort"`) {
						panic(http.ErrAbortHandler)
					}
				})
			}
		},
		inside: func() wrap {
			return func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() { _ = recover() }()
					next.ServeHTTP(w, r)
				})
			}
		},
	},
	"folded lines are fields": {breaks: "framing/folded", wire: func(read []byte) int {
		return copy(read, bytes.ReplaceAll(read, []byte("\r\n\t"), []byte("\r\n")))
	}},

	"keys of clients that left are forgotten": {breaks: "retries/lost retries/cut", outside: forgetLeavers},

	"keys in lower case": {breaks: "key/case", outside: rewriteKey(func(key string) string {
		if strings.Contains(key, ";") {
			return key
		}
		return strings.ToLower(key)
	})},
	"keys cut at 200 bytes": {breaks: "key/255", outside: rewriteKey(func(key string) string {
		if len(key) < 250 || len(key) > 260 {
			return key
		}
		return key[:200] + `"`
	})},
	"long keys cut": {breaks: "key/long", outside: rewriteKey(func(key string) string {
		if len(key) < 1000 {
			return key
		}
		return key[:200] + `"`
	})},
	"parameters are part of the key": {breaks: "key/parameters", outside: rewriteKey(func(key string) string {
		return strings.Replace(key, `";a=1;b="x"`, ` a=1"`, 1)
	})},
	"keys as file names": {breaks: "key/distinct", outside: rewriteKey(func(key string) string {
		return strings.NewReplacer(":", "_", "+", "_", "*", "_").Replace(key)
	})},
	"tabs in keys": {breaks: "key/control", outside: rewriteKey(func(key string) string { return strings.ReplaceAll(key, "\t", " ") })},
	"any bytes in keys": {breaks: "key/ascii", outside: rewriteKey(func(key string) string {
		return strings.Map(func(r rune) rune {
			if r > 0x7f {
				return '_'
			}
			return r
		}, key)
	})},
	"the first of several keys": {breaks: "key/malformed", outside: rewriteKey(func(key string) string {
		first, _, _ := strings.Cut(key, ", ")
		return first
	})},
	"the first of several lines": {breaks: "key/lines", outside: changeRequest(func(r *http.Request) {
		if lines := r.Header[keyField]; len(lines) > 1 {
			r.Header[keyField] = lines[:1]
		}
	})},
	"an empty key is none": {breaks: "key/empty", outside: changeRequest(func(r *http.Request) {
		if lines := r.Header[keyField]; len(lines) == 1 && (lines[0] == "" || lines[0] == `""`) {
			r.Header.Del(keyField)
		}
	})},
	"quoted keys only": {breaks: "key/bare", config: func(c *protocol.Config) { c.KeyMode = protocol.Strict }},
	"trailers are fields": {breaks: "key/trailer", outside: changeRequest(func(r *http.Request) {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body)) // which fails again where it failed
		if err == nil && r.Trailer.Get(keyField) != "" {
			r.Header.Set(keyField, r.Trailer.Get(keyField))
		}
	})},

	"first runs are marked": {breaks: "presence/marker", outside: changeAnswer(func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code/100 == 2 {
			a.Header().Set(markerField, "true")
		}
	})},
	"replays are not marked": {breaks: "replay/marker", outside: changeReplay(func(_ *http.Request, a *httptest.ResponseRecorder) { a.Header().Del(markerField) })},
	"replays of text": {breaks: "replay/body", outside: changeReplay(func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Body.Len() > 512 {
			return // others look at those
		}
		a.Body = bytes.NewBuffer(bytes.ReplaceAll(a.Body.Bytes(), []byte("\r\n"), []byte("\n")))
	})},
	"replays without coding": {breaks: "replay/coding", outside: changeReplay(func(_ *http.Request, a *httptest.ResponseRecorder) { a.Header().Del("Content-Encoding") })},
	"replays without type": {breaks: "replay/type", outside: changeReplay(func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Header().Get("Content-Type") != "" {
			a.Header().Set("Content-Type", "text/plain")
		}
	})},
	"replays with one line a field": {breaks: "replay/fields", outside: changeReplay(func(_ *http.Request, a *httptest.ResponseRecorder) {
		for name, values := range a.Header() {
			a.Header()[name] = values[:min(1, len(values))]
		}
	})},
	"replays of redirects": {breaks: "replay/status", outside: changeReplay(func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == http.StatusSeeOther {
			a.Code = http.StatusFound
		}
	})},
	"replays with a type for nothing": {breaks: "replay/empty", outside: changeReplay(func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == http.StatusNoContent {
			a.Header().Set("Content-Type", "text/plain")
		}
	})},
	"replays with the first date": {breaks: "replay/date", outside: withFirst(func(first, again *httptest.ResponseRecorder) {
		again.Header().Set("Date", first.Header().Get("Date"))
	})},
	"replays with cookies": {breaks: "replay/cookies", outside: withFirst(func(first, again *httptest.ResponseRecorder) {
		again.Header()["Set-Cookie"] = first.Header()["Set-Cookie"]
	})},
	"replays in ranges": {breaks: "replay/conditions", outside: changeReplay(func(r *http.Request, a *httptest.ResponseRecorder) {
		if r.Header.Get("Range") != "" {
			a.Body.Truncate(1)
		}
	})},
	"large replays are cut": {breaks: "large/answer", outside: changeReplay(func(_ *http.Request, a *httptest.ResponseRecorder) {
		a.Body.Truncate(min(a.Body.Len(), 64<<10))
	})},
	"very large answers are not kept": {breaks: "large/huge", inside: decide(`"body_size":4194304`, protocol.Release)},

	"any body": {
		breaks: "binding/refused binding/422 binding/query binding/running methods/bound large/request",
		config: func(c *protocol.Config) { c.Fingerprint.Func = protocol.NoFingerprint },
	},
	"any query": {breaks: "binding/query", outside: changeRequest(func(r *http.Request) { r.URL.RawQuery, r.RequestURI = "", r.URL.Path })},
	"any method": {breaks: "methods/bound", outside: changeRequest(func(r *http.Request) {
		if r.Method == http.MethodPatch {
			r.Method = http.MethodPost
		}
	})},
	"the end of a large body":        {breaks: "large/request", outside: cutBody(200<<10, 1<<20)},
	"the end of a very large body":   {breaks: "large/limit", outside: cutBody(1<<20, 1<<30)},
	"traces are part of the request": {breaks: "binding/headers", config: func(c *protocol.Config) { c.Fingerprint.Headers = []string{"Traceparent"} }},
	"chunks are part of the request": {
		breaks:  "binding/framing",
		config:  func(c *protocol.Config) { c.Fingerprint.Headers = []string{"X-Coding"} },
		outside: changeRequest(func(r *http.Request) { r.Header.Set("X-Coding", strings.Join(r.TransferEncoding, ",")) }),
	},
	"400 for another body": {breaks: "binding/422", outside: changeStatus(http.StatusUnprocessableEntity, http.StatusBadRequest)},
	"bodies that broke off": {breaks: "framing/short", outside: changeRequest(func(r *http.Request) {
		if len(r.TransferEncoding) > 0 {
			body, _ := io.ReadAll(r.Body) // and the error is ignored
			r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		}
	})},

	"one request at a time": {breaks: "concurrency/others", inside: func() wrap {
		var mu sync.Mutex
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				next.ServeHTTP(w, r)
			})
		}
	}},
	"409 for a while": {breaks: "concurrency/retry-after", outside: changeAnswer(func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == http.StatusConflict {
			a.Header().Del("Retry-After")
		}
	})},
	"runs end with their client": {breaks: "concurrency/disconnect", outside: rememberClient, inside: endWithClient},

	"keyed GET": {breaks: "methods/safe", outside: cacheGET},
	"invalid keys on GET": {breaks: "methods/malformed", outside: func() wrap {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && strings.Count(r.Header.Get(keyField), `"`) == 1 {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}},

	"keys with bodies are shared": {breaks: "scopes/payload", outside: otherScopes(func(w http.ResponseWriter, sameBody, _ bool) bool {
		if sameBody {
			return false
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		return true
	})},
	"running keys are shared": {breaks: "scopes/running", outside: otherScopes(func(w http.ResponseWriter, _, running bool) bool {
		if !running {
			return false
		}
		w.WriteHeader(http.StatusConflict)
		return true
	})},
	"known keys take longer": {breaks: "timing/principals", outside: otherScopes(func(http.ResponseWriter, bool, bool) bool {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the defect itself
		return false
	})},

	"429 is kept":     {breaks: "failures/unprocessed", inside: decide(`"status":429`, protocol.Keep)},
	"404 is not kept": {breaks: "failures/4xx", inside: decide(`"status":404`, protocol.Release)},
	"500 runs for ever": {breaks: "failures/decided", outside: withFirst(func(first, again *httptest.ResponseRecorder) {
		if first.Code == http.StatusInternalServerError {
			again.Code = http.StatusConflict
		}
	})},

	"plain refusals": {breaks: "problems/document", outside: changeRefusal(func(_ *http.Request, a *httptest.ResponseRecorder) {
		a.Header().Set("Content-Type", "application/json")
	})},
	"one type for all refusals": {breaks: "problems/types", outside: changeRefusal(func(_ *http.Request, a *httptest.ResponseRecorder) {
		_, rest, _ := strings.Cut(a.Body.String(), `,`)
		a.Body = bytes.NewBufferString(`{"type":"https://example.com/problem",` + rest)
	})},
	"refusals with the key": {breaks: "problems/silent", outside: changeRefusal(func(r *http.Request, a *httptest.ResponseRecorder) {
		a.Header().Set(keyField, r.Header.Get(keyField))
	})},
	"refusals for caches": {breaks: "problems/no-store", outside: changeRefusal(func(_ *http.Request, a *httptest.ResponseRecorder) {
		a.Header().Set("Cache-Control", "max-age=60")
	})},
	"refusals to try again": {breaks: "problems/final", outside: changeRefusal(func(_ *http.Request, a *httptest.ResponseRecorder) {
		a.Header().Set("Retry-After", "1")
	})},
	"marked refusals": {breaks: "problems/marker", outside: changeRefusal(func(_ *http.Request, a *httptest.ResponseRecorder) {
		a.Header().Set(markerField, "true")
	})},

	"refused requests run": {breaks: "binding/refused binding/422", outside: runRefused},

	"a short memory": {breaks: "retention/kept", config: func(c *protocol.Config) { c.Retention = judgedRetention * 7 / 12 }},
	"a long memory":  {breaks: "retention/ends", config: func(c *protocol.Config) { c.Retention = time.Hour }},
}

// The fields of the protocol.
const (
	keyField    = "Idempotency-Key"
	markerField = "Idempotent-Replayed"
)

// changeRequest changes each request.
func changeRequest(change func(*http.Request)) func() wrap {
	return func() wrap {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				change(r)
				next.ServeHTTP(w, r)
			})
		}
	}
}

// rewriteKey changes the key of each request that has one.
func rewriteKey(change func(string) string) func() wrap {
	return changeRequest(func(r *http.Request) {
		if lines := r.Header[keyField]; len(lines) == 1 {
			r.Header[keyField] = []string{change(lines[0])}
		}
	})
}

// cutBody drops the second half of a body of a size between the two.
func cutBody(least, most int64) func() wrap {
	return changeRequest(func(r *http.Request) {
		if r.ContentLength < least || r.ContentLength > most {
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, least/2))
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err == nil {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
	})
}

// changeAnswer changes each answer that was not cut short.
func changeAnswer(change func(*http.Request, *httptest.ResponseRecorder)) func() wrap {
	return func() wrap {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				a := httptest.NewRecorder()
				next.ServeHTTP(a, r)
				change(r, a)
				send(w, a)
			})
		}
	}
}

func send(w http.ResponseWriter, a *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), a.Header())
	w.Header().Del("Content-Length")
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body.Bytes()) //nolint:gosec // of a test, to a test
}

func changeReplay(change func(*http.Request, *httptest.ResponseRecorder)) func() wrap {
	return changeAnswer(func(r *http.Request, a *httptest.ResponseRecorder) {
		if a.Header().Get(markerField) != "" {
			change(r, a)
		}
	})
}

func changeRefusal(change func(*http.Request, *httptest.ResponseRecorder)) func() wrap {
	return changeAnswer(func(r *http.Request, a *httptest.ResponseRecorder) {
		if a.Header().Get("Content-Type") == "application/problem+json" && a.Code != http.StatusConflict {
			change(r, a)
		}
	})
}

func changeStatus(from, to int) func() wrap {
	return changeRefusal(func(_ *http.Request, a *httptest.ResponseRecorder) {
		if a.Code == from {
			a.Code = to
			a.Body = bytes.NewBuffer(bytes.Replace(a.Body.Bytes(), []byte(`,"status":422`), nil, 1))
		}
	})
}

// withFirst changes each later answer for a key with the first one.
func withFirst(change func(first, again *httptest.ResponseRecorder)) func() wrap {
	return func() wrap {
		var mu sync.Mutex
		firsts := make(map[string]*httptest.ResponseRecorder)
		return changeAnswer(func(r *http.Request, a *httptest.ResponseRecorder) {
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
		})()
	}
}

// decide takes the decision of a handler about runs whose program has a text.
func decide(text string, decision func(context.Context) bool) func() wrap {
	return changeRequest(func(r *http.Request) {
		if strings.Contains(r.Header.Get(adaptertest.ProgramHeader), text) {
			decision(r.Context())
		}
	})
}

// clientKey is the key of a context for the context of the connection, which the guard
// does not pass on.
type clientKey struct{}

func rememberClient() wrap {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), clientKey{}, r.Context())))
		})
	}
}

// endWithClient forgets a run when its client leaves.
func endWithClient() wrap {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := httptest.NewRecorder()
			next.ServeHTTP(a, r)
			if client, ok := r.Context().Value(clientKey{}).(context.Context); ok && client.Err() != nil {
				protocol.Release(r.Context())
			}
			send(w, a)
		})
	}
}

// cacheGET answers GET with the key of an earlier POST once and for all.
func cacheGET() wrap {
	var posted, got sync.Map
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key := r.Header.Get(keyField)
			if r.Method == http.MethodPost {
				posted.Store(key, true)
			}
			if _, known := posted.Load(key); r.Method != http.MethodGet || !known {
				next.ServeHTTP(w, r)
				return
			}
			a := httptest.NewRecorder()
			if first, found := got.Load(key); found {
				a = first.(*httptest.ResponseRecorder)
			} else {
				next.ServeHTTP(a, r)
				got.Store(key, a)
			}
			send(w, a)
		})
	}
}

// otherScopes calls react, which may answer, for a key that another scope used before.
func otherScopes(react func(w http.ResponseWriter, sameBody, running bool) bool) func() wrap {
	type use struct {
		scope, body string
		running     int
	}
	return func() wrap {
		var mu sync.Mutex
		uses := make(map[string]*use)
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || r.Header.Get(keyField) == "" {
					r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
					next.ServeHTTP(w, r)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				scope, key := r.Header.Get(adaptertest.TenantHeader), r.Header.Get(keyField)
				mu.Lock()
				first := uses[key]
				if first == nil {
					first = &use{scope: scope, body: string(body)}
					uses[key] = first
				}
				known, sameBody, running := first.scope != scope, first.body == string(body), first.running > 0
				first.running++
				mu.Unlock()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					first.running--
				}()
				if known && react(w, sameBody, running) {
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}
}

// forgetLeavers takes a key for another one after a client that sent it left early.
func forgetLeavers() wrap {
	var left sync.Map
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key := r.Header.Get(keyField)
			if _, forgotten := left.Load(key); forgotten {
				r.Header.Set(keyField, strings.TrimSuffix(key, `"`)+`again"`)
			}
			next.ServeHTTP(w, r)
			if r.Header.Get(keyField) != key || r.UserAgent() == "" {
				return // a client that has its answer leaves too; those of the retries name themselves
			}
			select {
			case <-r.Context().Done():
				left.Store(key, true)
			case <-time.After(100 * time.Millisecond): // the client may leave during the answer
			}
		})
	}
}

// runRefused runs the operation, unseen, for requests that are refused for their body.
func runRefused() wrap {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := httptest.NewRecorder()
			next.ServeHTTP(a, r)
			if a.Code == http.StatusUnprocessableEntity {
				unkeyed := r.Clone(r.Context())
				unkeyed.Header.Del(keyField)
				next.ServeHTTP(httptest.NewRecorder(), unkeyed)
			}
			send(w, a)
		})
	}
}
