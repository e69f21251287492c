package reprisetest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/reprisetest"
)

// guarded returns a handler with its middleware, over a new store.
func guarded(tb testing.TB, cfg protocol.Config, h http.HandlerFunc) http.Handler {
	tb.Helper()
	engine, err := reprise.New(memstore.New(), reprise.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	guard, err := protocol.Over(engine, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return once(guard, h)
}

func order() *http.Request { return reprisetest.Post("/orders", "book") }

// flaws are handlers with a mistake, each with a part of every function's failure.
var flaws = map[string]struct {
	handler http.HandlerFunc
	replay  string // a part of Replay's failure; empty: it passes
}{
	"sends a status that is not kept": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, "429 is never kept"},
	"fails":                           {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, "500 is not kept"},
	"panics":                          {func(http.ResponseWriter, *http.Request) { panic("a bug") }, "the handler panicked"},
	"releases its key": {func(w http.ResponseWriter, r *http.Request) {
		protocol.Release(r.Context())
		w.WriteHeader(http.StatusCreated)
	}, "the handler ran again"},
}

// Middlewares before the guard leave the principal in the context, and a client that
// disconnects cancels it.
func TestRequestKeepsItsContext(t *testing.T) {
	t.Parallel()
	type tenant struct{}
	ctx, disconnect := context.WithCancel(context.WithValue(t.Context(), tenant{}, "tenant-1"))
	disconnect()
	var seen []context.Context
	build := func(guard *protocol.Guard) http.Handler {
		h := once(guard, func(http.ResponseWriter, *http.Request) {})
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Context())
			h.ServeHTTP(w, r)
		})
	}
	app := reprisetest.New(t, protocol.Config{}, build)
	request := func() *http.Request { return order().WithContext(ctx) }
	app.Send(request())
	reprisetest.Replay(t, app.Handler(), request())
	app.Crash(request())
	if len(seen) != 6 {
		t.Errorf("%d requests were served, want 6", len(seen))
	}
	for n, ctx := range seen {
		if ctx.Value(tenant{}) != "tenant-1" || ctx.Err() == nil {
			t.Errorf("request %d has the tenant %v, and its context ended with %v", n+1, ctx.Value(tenant{}), ctx.Err())
		}
	}
}

func TestReplayFailsForWrongHandlers(t *testing.T) {
	t.Parallel()
	var db orders
	for name, c := range flaws {
		got := failure(t, func(tb testing.TB) { reprisetest.Replay(tb, guarded(tb, protocol.Config{}, c.handler), order()) })
		if !strings.Contains(got, c.replay) {
			t.Errorf("a handler that %s: %q, want %q", name, got, c.replay)
		}
	}
	bare := order()
	bare.Header.Del("Idempotency-Key")
	used := order()
	h := guarded(t, protocol.Config{}, db.create)
	reprisetest.Replay(t, h, used)
	for name, c := range map[string]struct {
		handler http.Handler
		r       *http.Request
		want    string
	}{
		"no middleware":       {http.HandlerFunc(db.create), order(), "the handler ran again"},
		"no key":              {h, bare, "the handler ran again"},
		"no key, required":    {guarded(t, protocol.Config{Required: true}, db.create), bare, "the middleware refused it"},
		"a key that was used": {h, used, "answered with a replay"},
		"a layer outside that changes bodies": {
			changing(guarded(t, protocol.Config{}, db.create)), order(),
			"- body, line 2: response 1\n+ body, line 2: response 2",
		},
	} {
		if got := failure(t, func(tb testing.TB) { reprisetest.Replay(tb, c.handler, c.r) }); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// changing appends to every response.
func changing(next http.Handler) http.Handler {
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := httptest.NewRecorder()
		next.ServeHTTP(inner, r)
		inner.Header().Del("Content-Length")
		maps.Copy(w.Header(), inner.Header())
		w.WriteHeader(inner.Code)
		_, _ = w.Write(inner.Body.Bytes())
		fmt.Fprintf(w, "response %d\n", n.Add(1))
	})
}

func TestRace(t *testing.T) {
	t.Parallel()
	var db orders
	for _, wait := range []time.Duration{0, 5 * time.Second} {
		before := db.count()
		if ran := reprisetest.Race(t, guarded(t, protocol.Config{Wait: wait}, db.create), 20, order()); ran.Status != 201 || db.count() != before+1 {
			t.Errorf("wait %v: %d orders, answered %v", wait, db.count()-before, ran)
		}
	}
	if got := failure(t, func(tb testing.TB) { reprisetest.Race(tb, http.HandlerFunc(db.create), 5, order()) }); !strings.Contains(got, "5 ran, want 1") {
		t.Errorf("without the middleware: %q", got)
	}
	if got := failure(t, func(tb testing.TB) {
		reprisetest.Race(tb, guarded(tb, protocol.Config{}, flaws["panics"].handler), 5, order())
	}); !strings.Contains(got, "panicked") {
		t.Errorf("a handler that panics: %q", got)
	}
	forgetful := flaws["sends a status that is not kept"].handler
	if got := failure(t, func(tb testing.TB) { reprisetest.Race(tb, guarded(tb, protocol.Config{}, forgetful), 5, order()) }); got == "" {
		t.Error("a handler whose response is not kept: no failure")
	}
}

// newApp returns an App, and the attempts that its handler saw.
func newApp(tb testing.TB, cfg protocol.Config, db *orders) (*reprisetest.App, *[]int) {
	tb.Helper()
	attempts := new([]int)
	return reprisetest.New(tb, cfg, func(guard *protocol.Guard) http.Handler {
		return once(guard, func(w http.ResponseWriter, r *http.Request) {
			attempt, _ := reprise.AttemptFrom(r.Context())
			*attempts = append(*attempts, attempt.Number())
			db.create(w, r)
		})
	}), attempts
}

// Another process serves the retry, and every one after it.
func TestProcessThatDies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg    protocol.Config
		crash  string // the attempts that ran where it died after the handler
		lapse  string // and where it died before
		status int
	}{
		"recoverable":  {protocol.Config{}, "[1 2]", "[2]", 201},
		"at most once": {protocol.Config{Preset: reprise.AtMostOnce}, "[1]", "[]", 409},
		"one attempt":  {protocol.Config{MaxAttempts: 1}, "[1]", "[]", 409},
		"fail open":    {protocol.Config{FailOpen: true}, "[1 2]", "[2]", 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var db orders
			app, attempts := newApp(t, c.cfg, &db)
			app.Send(order()) // another one, before
			*attempts = nil
			if a := app.Crash(order()); a.Status != c.status || fmt.Sprint(*attempts) != c.crash {
				t.Errorf("crash: attempts %v, want %s; answered %v", *attempts, c.crash, a)
			}
			reprisetest.Replay(t, app.Handler(), order()) // the next process serves
			*attempts = nil
			if a := app.Lapse(order()); a.Status != c.status || fmt.Sprint(*attempts) != c.lapse {
				t.Errorf("lapse: attempts %v, want %s; answered %v", *attempts, c.lapse, a)
			}
		})
	}
}

// The example of StoreDown shows each failure under the default policy.
func TestStoreThatFailsOpen(t *testing.T) {
	t.Parallel()
	var db orders
	open, _ := newApp(t, protocol.Config{FailOpen: true}, &db)
	if a := open.StoreDown(order()); a.Header.Get("Idempotency-Status") != "unprotected" || a.Status != 201 {
		t.Errorf("answered %v", a)
	}
}

// Each function fails for a route that was registered without the middleware, and for a
// handler whose response is not kept.
func TestFunctionsOfAppFailForWrongHandlers(t *testing.T) {
	t.Parallel()
	bare := func(*protocol.Guard) http.Handler { return http.HandlerFunc(new(orders).create) }
	forgetful := func(guard *protocol.Guard) http.Handler {
		return once(guard, flaws["sends a status that is not kept"].handler)
	}
	for name, run := range map[string]func(*reprisetest.App, *http.Request){
		"Crash":              func(a *reprisetest.App, r *http.Request) { a.Crash(r) },              //nolint:contextcheck // an App has that of its test
		"Lapse":              func(a *reprisetest.App, r *http.Request) { a.Lapse(r) },              //nolint:contextcheck // an App has that of its test
		"StoreDown":          func(a *reprisetest.App, r *http.Request) { a.StoreDown(r) },          //nolint:contextcheck // an App has that of its test
		"StoreFailsAfterRun": func(a *reprisetest.App, r *http.Request) { a.StoreFailsAfterRun(r) }, //nolint:contextcheck // an App has that of its test
		"StoreLosesReply":    func(a *reprisetest.App, r *http.Request) { a.StoreLosesReply(r) },    //nolint:contextcheck // an App has that of its test
	} {
		with := func(build func(*protocol.Guard) http.Handler) string {
			return failure(t, func(tb testing.TB) { run(reprisetest.New(tb, protocol.Config{}, build), order()) })
		}
		if got := with(bare); !strings.Contains(got, "without the middleware") {
			t.Errorf("%s without the middleware: %q", name, got)
		}
		if strings.HasPrefix(name, "Store") && name != "StoreDown" && with(forgetful) == "" {
			t.Errorf("%s of a response that is not kept: no failure", name)
		}
	}
	used := failure(t, func(tb testing.TB) {
		var db orders
		app, _ := newApp(tb, protocol.Config{}, &db)
		r := order()
		app.Send(r)
		app.Crash(r)
	})
	if !strings.Contains(used, "did not run under the guard") {
		t.Errorf("a key that was used: %q", used)
	}
	if got := failure(t, func(tb testing.TB) { reprisetest.New(tb, protocol.Config{Key: protocol.KeyHeader("not a name")}, nil) }); !strings.Contains(got, "Config.Key") {
		t.Errorf("an invalid policy: %q", got)
	}
}

// The retention ends on the store's clock, and in a bubble on that of the bubble.
func TestAdvanceEndsTheRetention(t *testing.T) {
	t.Parallel()
	var db orders
	app, _ := newApp(t, protocol.Config{}, &db)
	r := order()
	reprisetest.Replay(t, app.Handler(), r)
	app.Advance(24 * time.Hour)
	if a := app.Send(r); a.Replayed() || string(a.Body) != "order 2: book\n" { // the request has kept its body
		t.Errorf("after the retention: %d orders, %v", db.count(), a)
	}
	synctest.Test(t, func(t *testing.T) {
		app, _ := newApp(t, protocol.Config{}, &db)
		r := order()
		reprisetest.Replay(t, app.Handler(), r)
		time.Sleep(24 * time.Hour) //nolint:forbidigo // the time of the bubble
		if a := app.Send(r); a.Replayed() {
			t.Errorf("after the retention in a bubble: %v", a)
		}
		app.Crash(order())
	})
}

// A framework whose handlers are functions is tested through its own way to serve one
// request.
func TestFunc(t *testing.T) {
	t.Parallel()
	var db orders
	h := guarded(t, protocol.Config{}, db.create)
	served := func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result(), nil
	}
	first, _ := reprisetest.Replay(t, reprisetest.Func(served), order())
	if !bytes.HasPrefix(first.Body, []byte("order 1")) || first.Status != 201 || first.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("answered %v", first)
	}
	broken := func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
	if got := failure(t, func(tb testing.TB) { reprisetest.Replay(tb, reprisetest.Func(broken), order()) }); !strings.Contains(got, "unexpected EOF") {
		t.Errorf("a function that fails: %q", got)
	}
}
