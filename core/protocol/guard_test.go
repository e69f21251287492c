package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

func TestNewNamesTheInvalidField(t *testing.T) {
	t.Parallel()
	engine := must(reprise.New(memstore.New(), reprise.Config{}))
	for field, cfg := range map[string]protocol.Config{
		"Label: \"33":                {Label: "33" + strings.Repeat("x", 31)},
		"Label: \"caf":               {Label: "caf\u00e9"},
		"Label: \"a\\n":              {Label: "a\nb"},
		"Label: \"reprise":           {Label: store.ProbeLabel},
		"Key":                        {Key: protocol.KeyHeader("not a name")},
		"Key: idempotency-key":       {Key: protocol.KeyHeader("Idempotency-Key", "idempotency-key")},
		"KeyMode":                    {KeyMode: 9},
		"Methods":                    {Methods: []string{"POST", "GET"}},
		"Methods: \"post\"":          {Methods: []string{"post"}},
		"Methods: the list is empty": {Methods: []string{}},
		"Preset":                     {Preset: 9},
		"MaxAttempts":                {MaxAttempts: -1},
		"Oversize":                   {Oversize: 9},
		"Omit: needs CanonicalJSON":  {Fingerprint: protocol.Fingerprinting{Omit: []string{"/id"}}},
		"Omit: needs":                {Fingerprint: protocol.Fingerprinting{Omit: []string{"/id"}, Func: protocol.NoFingerprint}},
		"Omit: \"id\"":               {Fingerprint: protocol.Fingerprinting{Omit: []string{"id"}, Func: protocol.CanonicalJSON}},
		"Omit: \"\"":                 {Fingerprint: protocol.Fingerprinting{Omit: []string{""}, Func: protocol.CanonicalJSON}},
		"Omit: \"/a~2\"":             {Fingerprint: protocol.Fingerprinting{Omit: []string{"/b", "/a~2"}, Func: protocol.CanonicalJSON}},
		"\"/a\" and \"/a/b\" lead":   {Fingerprint: protocol.Fingerprinting{Omit: []string{"/a", "/a/b"}, Func: protocol.CanonicalJSON}},
		"\"/a/b\" and \"/a\" lead":   {Fingerprint: protocol.Fingerprinting{Omit: []string{"/a/b", "/a"}, Func: protocol.CanonicalJSON}},
		"Omit: has 33 pointers":      {Fingerprint: protocol.Fingerprinting{Omit: make([]string, 33), Func: protocol.CanonicalJSON}},
		"Keep.Headers":               {Keep: protocol.Keeping{Headers: []string{"Set-Cookie"}}},
	} {
		_, err := protocol.Over(engine, cfg)
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := protocol.Over(engine, protocol.Config{}); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}

// R1: method, key lines, presence, grammar, scope, body. Later parts are not read.
func TestR1OrderOfChecks(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Required: true, Limits: protocol.Limits{RequestBody: 4}, Key: protocol.KeyHeader("Idempotency-Key", "X-Idempotency-Key")})
	const (
		nothing = iota
		scopeAsked
		bodyRead
	)
	for _, c := range []struct {
		name   string
		method string
		header http.Header
		scope  string
		status int // 0: passes
		got    int
	}{
		{"method", "GET", http.Header{"Idempotency-Key": {"bad\x01"}}, "", 0, nothing},
		{"method, as sent", "post", http.Header{}, "", 0, nothing},
		{"method, of no policy", "PUT", http.Header{"Idempotency-Key": {"bad\x01"}}, "", 0, nothing},
		{"method, of another policy", "DELETE", http.Header{"Idempotency-Key": {"bad\x01"}}, "", 0, nothing},
		{"presence", "POST", http.Header{}, "", 400, nothing},
		{"lines", "POST", http.Header{"Idempotency-Key": {"a", "a"}}, "", 400, nothing},
		{"names", "POST", http.Header{"Idempotency-Key": {"a"}, "X-Idempotency-Key": {"a"}}, "", 400, nothing},
		{"grammar", "POST", http.Header{"Idempotency-Key": {"bad\x01"}}, "", 400, nothing},
		{"empty", "POST", http.Header{"Idempotency-Key": {`""`}}, "", 400, nothing},
		{"scope", "POST", http.Header{"Idempotency-Key": {"a"}}, "", 403, scopeAsked},
		{"body", "POST", http.Header{"Idempotency-Key": {"a"}}, "tenant", 413, bodyRead},
		{"alias", "PATCH", http.Header{"X-Idempotency-Key": {"a"}}, "tenant", 413, bodyRead},
	} {
		got := nothing
		body := readerFunc(func(p []byte) (int, error) {
			got = bodyRead
			return copy(p, "too large"), io.EOF
		})
		v := b.guard.Admit(t.Context(), protocol.Request{Method: c.method, Header: c.header, Body: body}, func() (string, error) {
			got = scopeAsked
			return c.scope, nil
		})
		if v.Pass != (c.status == 0) || v.Response.Status != c.status || v.Exchange != nil || got != c.got {
			t.Errorf("%s: admission %+v after step %d, want status %d after step %d", c.name, v, got, c.status, c.got)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestR44ScopeIsNeverGuessed(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for _, scope := range []func() (string, error){
		func() (string, error) { return "", nil },
		func() (string, error) { return "tenant", errors.New("no token") },
		func() (string, error) { return "ten\x00ant", nil },
		func() (string, error) { return "tenant\n", nil },
		func() (string, error) { return "tenant\x7f", nil },
		func() (string, error) { return "\x00unscoped", nil },
	} {
		v := b.guard.Admit(t.Context(), protocol.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {"k"}}}, scope)
		if v.Response.Status != 403 || strings.Contains(string(v.Response.Body), "token") {
			t.Errorf("admission %d %s", v.Response.Status, v.Response.Body)
		}
	}
}

// R44: a failure of the scope function is logged once in a while, and one that may pass
// is for a client to retry. No key is in the log.
func TestR44FailuresOfTheScopeFunction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		logged string
	}{
		{nil, 403, "the scope function returned an empty name"},
		{errors.New("tenant database: connection refused"), 403, "tenant database: connection refused"},
		{fmt.Errorf("%w: tenant database: connection refused", store.ErrUnavailable), 503, "tenant database: connection refused"},
		{errors.New(`no tenant for {"secret-key"}`), 403, "withheld"},
		{fmt.Errorf("%w: GET /tenants?key=secret%%2Dkey", store.ErrUnavailable), 503, "withheld"},
		{(*tenantError)(nil), 500, "panicked"}, // and the panic does not reach the framework
	} {
		log, seen := new(strings.Builder), new(eventLog)
		guard := setup(t, protocol.Config{Engine: reprise.Config{Log: slog.New(slog.NewTextHandler(log, nil)), MaxRun: time.Hour, Observer: seen}}).guard
		for range 2 {
			a := guard.Admit(t.Context(), protocol.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {`"secret-key"`}}},
				func() (string, error) { return "", c.err })
			_, retried := a.Response.Header.Get("Retry-After")
			if got := a.Response; got.Status != c.status || retried != (c.status == 503) {
				t.Errorf("%v: status %d, to be retried: %t", c.err, got.Status, retried)
			}
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, c.logged) || strings.Contains(text, "secret") {
			t.Errorf("%v is logged as %q", c.err, text)
		}
		if got, err := seen.outcomes(); len(got) != 2 || err == nil {
			t.Errorf("%v: the observer got %q, %v", c.err, got, err)
		}
	}
}

// A request whose body or scope function panics, or ends the goroutine, is counted once.
func TestRequestThatIsNotCheckedToItsEndIsCounted(t *testing.T) {
	t.Parallel()
	panics := func() { panic(http.ErrAbortHandler) }
	b, body := setup(t, protocol.Config{}), strings.NewReader("body")
	for name, c := range map[string]struct{ body, scope func() }{
		"body that panics":                       {body: panics},
		"body that ends the goroutine":           {body: runtime.Goexit},
		"scope function that panics":             {scope: panics},
		"scope function that ends the goroutine": {scope: runtime.Goexit},
	} {
		before := b.guard.Engine().Stats().Outcomes[reprise.Failed]
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			b.guard.Admit(t.Context(), protocol.Request{
				Method: "POST", Header: http.Header{"Idempotency-Key": {"k"}},
				Body: readerFunc(func(p []byte) (int, error) {
					if c.body != nil {
						c.body()
					}
					return body.Read(p)
				}),
			}, func() (string, error) {
				if c.scope != nil {
					c.scope()
				}
				return "tenant", nil
			})
		}()
		<-done
		if n := b.guard.Engine().Stats().Outcomes[reprise.Failed] - before; n != 1 {
			t.Errorf("%s: counted %d times", name, n)
		}
	}
}

// R43: no principal has the name of the key space that all share.
func TestR43SharedKeySpaceIsNoPrincipal(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	seen := map[store.ID]string{}
	for name, scope := range map[string]func() (string, error){
		"shared": func() (string, error) { return "", protocol.ErrUnscoped },
		"tenant": func() (string, error) { return "unscoped", nil },
		"other":  func() (string, error) { return "shared", nil },
		"spaced": func() (string, error) { return " a tenant ~", nil },
	} {
		a := b.guard.Admit(t.Context(), protocol.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {"k"}}}, scope)
		wantRun(t, a)
		view, _ := reprise.AttemptFrom(a.Exchange.Context())
		if other, taken := seen[view.ID()]; taken {
			t.Errorf("%s and %s have the same operation", name, other)
		}
		seen[view.ID()] = name
		finish(a.Exchange, 200)
	}
}

// failures of the store: the response to each, with and without FailOpen (R40, R42).
func TestR40FailuresOfTheStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
		opens  bool
	}{
		{store.ErrUnavailable, 503, "store-unavailable", true},
		{store.ErrUnknown, 503, "store-unavailable", true},
		{errors.New("anything"), 503, "store-unavailable", true},
		{store.ErrBusy, 503, "store-unavailable", false},
		{store.ErrNotReplicated, 503, "store-unavailable", false},
		{store.ErrFull, 503, "store-unavailable", false},
		{store.ErrMisconfigured, 503, "store-unavailable", false},
		{store.ErrCorrupt, 500, "record-corrupt", false},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			t.Parallel()
			for _, failOpen := range []bool{false, true} {
				engine := must(reprise.New(unclaimed(c.err), reprise.Config{ClaimTimeout: 10 * time.Millisecond}))
				b := &bench{t, must(protocol.Over(engine, protocol.Config{FailOpen: failOpen}))}
				ran := false
				w := b.run("k", func(w *protocol.Recorder, _ http.Header, _ *protocol.Exchange) {
					ran = true
					w.WriteHeader(http.StatusCreated)
				})
				switch {
				case failOpen && c.opens:
					if !ran || w.Code != 201 || w.Header().Get("Idempotency-Status") != "unprotected" || engine.Stats().Outcomes[reprise.Unprotected] != 1 {
						t.Errorf("open: ran %v, %d %v", ran, w.Code, w.Header())
					}
				case ran || w.Code != c.status || !strings.Contains(w.Body.String(), c.code):
					t.Errorf("ran %v, %d %s, want %d %s", ran, w.Code, w.Body, c.status, c.code)
				}
				_ = engine.Close(ended())
			}
		})
	}
}

// P11: a request that is not keyed needs no allocation.
func TestP11UnkeyedRequestsAllocateNothing(t *testing.T) { //nolint:paralleltest // counts allocations
	b := setup(t, protocol.Config{})
	header := http.Header{"Content-Type": {"application/json"}}
	ctx := t.Context()
	for _, method := range []string{"GET", "POST"} {
		if n := testing.AllocsPerRun(100, func() {
			if !b.guard.Admit(ctx, protocol.Request{Method: method, Header: header}, scope).Pass {
				t.Error("it did not pass")
			}
		}); n != 0 {
			t.Errorf("%s: %.1f allocations", method, n)
		}
	}
}

// A chain may meet the middleware twice, on a group and on its route: the run must not
// take itself for its duplicate.
func TestRequestWithinItsRunPasses(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Wait: time.Minute})
	var ctx context.Context
	b.run("key", func(rec *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
		ctx = x.Context() //nolint:fatcontext // it is to outlive its run
		if v := b.admitIn(ctx, "key", unread); !v.Pass {
			t.Errorf("met twice, the middleware answered %d", v.Response.Status)
		}
		if v := b.admitIn(ctx, "another", strings.NewReader("body")); v.Exchange == nil {
			t.Errorf("an operation inside of another is its own, and got %d", v.Response.Status)
		} else {
			finish(v.Exchange, 200) //nolint:contextcheck // an exchange has its own
		}
		rec.WriteHeader(http.StatusCreated)
	})
	if v := b.admitIn(ctx, "key", strings.NewReader("body")); v.Pass || v.Response.Status != 201 {
		t.Errorf("after the run, its context got %+v, want the replay", v)
	}
}

var unread = readerFunc(func([]byte) (int, error) { panic("the body was read") })

// The bounds of a policy are inclusive.
func TestBoundsOfAPolicyAreIncluded(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	engine := must(reprise.New(memstore.New(), reprise.Config{Retention: 10 * day}))
	st, longest, most := new(blobs), store.MaxDuration, store.MaxDuration-10*day
	key := func(n int) protocol.Config { return protocol.Config{Limits: protocol.Limits{Key: n}} }
	request := func(n int) protocol.Config { return protocol.Config{Limits: protocol.Limits{RequestBody: n}} }
	response := func(n int) protocol.Config { return protocol.Config{Limits: protocol.Limits{ResponseBody: n}} }
	blob := func(most int64, limit int) protocol.Config {
		return protocol.Config{Offload: protocol.Offloading{Blobs: st, MaxBody: most}, Limits: protocol.Limits{ResponseBody: limit}}
	}
	spool := func(most int64) protocol.Config {
		return protocol.Config{Offload: protocol.Offloading{Blobs: st, ReadOnly: true, MaxBody: 1000, MaxSpool: most}}
	}
	within := func(d time.Duration) protocol.Config {
		return protocol.Config{Offload: protocol.Offloading{Blobs: st, Timeout: d}}
	}
	for field, c := range map[string][4]protocol.Config{ // the bounds, and then those beyond them
		"Label":               {{Label: " "}, {Label: strings.Repeat("~", store.MaxLabel)}, {Label: "\x1f"}, {Label: strings.Repeat("~", store.MaxLabel+1)}},
		"Limits.Key":          {key(36), key(4096), key(35), key(4097)},
		"Limits.RequestBody":  {request(1), request(math.MaxInt32), request(-1), request(math.MinInt32)},
		"Limits.ResponseBody": {response(1), response(63 << 20), response(-1), response(63<<20 + 1)},
		"Retention":           {{Retention: time.Millisecond}, {Retention: longest}, {Retention: time.Millisecond - 1}, {Retention: longest + 1}},
		"Horizon": {
			{Horizon: time.Millisecond},
			{Retention: day, Horizon: longest - day},
			{Horizon: time.Millisecond - 1},
			{Retention: day, Horizon: longest - day + 1},
		},
		"Horizon: ":         {{Horizon: most - 1}, {Horizon: most}, {Horizon: -1}, {Horizon: most + 1}}, // beside the retention of the engine
		"Offload.MaxBody":   {blob(2, 1), blob(1<<40, 0), blob(-1, 0), blob(1<<40+1, 0)},
		"Offload.MaxBody: ": {blob(1001, 1000), blob(1002, 1000), blob(999, 1000), blob(1000, 1000)}, // besides the records' limits
		"Offload.MaxSpool":  {spool(1000), spool(1 << 50), spool(-1), spool(999)},
		"Offload.Timeout":   {within(time.Millisecond), within(time.Hour), within(time.Millisecond - 1), within(time.Hour + 1)},
		"Wait":              {{Wait: 0}, {Wait: time.Hour}, {Wait: -1}, {Wait: -time.Hour}},
	} {
		for i, cfg := range c {
			_, err := protocol.Over(engine, cfg)
			if i < 2 && err != nil {
				t.Errorf("%s: %v", field, err)
			}
			if i >= 2 && (!errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "Config."+field)) {
				t.Errorf("%s: accepted, or refused with %v", field, err)
			}
		}
	}
	// A retention of the guard takes the place of the engine's in the sum.
	if _, err := protocol.Over(engine, protocol.Config{Retention: day, Horizon: most + day}); err != nil {
		t.Errorf("beside a shorter retention: %v", err)
	}
	_, err := protocol.Over(engine, protocol.Config{Horizon: longest})
	if want := most.String(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say how much is left: %s", err, want)
	}
	_, err = protocol.Over(engine, protocol.Config{Retention: day, Horizon: longest})
	if want := (longest - day).String(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say how much is left: %s", err, want)
	}
}

// tenantError is an error that a scope function may return as a nil pointer.
type tenantError struct{ text string }

func (e *tenantError) Error() string { return e.text }
