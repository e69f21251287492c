package protocol_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// eventLog is an observer that remembers.
type eventLog struct {
	mu     sync.Mutex
	events []reprise.Event
}

func (l *eventLog) Observe(_ context.Context, e reprise.Event) {
	if e.Kind == reprise.EventDeclared {
		return // one for each guard
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// outcomes returns how requests ended, with the reasons of those that were refused, and
// forgets them.
func (l *eventLog) outcomes() (list []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		switch e.Name() {
		case "refused":
			list = append(list, e.Label+" refused "+e.Outcome.String())
			err = e.Err
		case "panic":
			err = e.Err
		case "claimed", "replayed", "mismatch", "in-progress":
			list = append(list, e.Label+" "+e.Name())
		default:
		}
	}
	l.events = nil
	return list, err
}

func observed(t *testing.T, cfg protocol.Config) (*bench, *eventLog) {
	t.Helper()
	log := new(eventLog)
	cfg.Engine.Observer = log
	return setup(t, cfg), log
}

// R33b: no error of a function of the policy brings the key to the observer, nor does its
// panic before the handler, of which it says where.
func TestErrorsOfAPolicyHaveNoKey(t *testing.T) {
	t.Parallel()
	const key = "key-1718"
	quotes := fmt.Errorf("order %q is wrong", key)
	post := protocol.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {key}}}
	find := func(end func(error) error) protocol.KeySource {
		return protocol.KeyFunc("event ID", func(*protocol.Request, []byte) (string, error) { return "", end(quotes) })
	}
	digest := func(end func(error) error) protocol.Fingerprinting {
		return protocol.Fingerprinting{Func: func(*protocol.Request, string, []byte) (store.Fingerprint, error) {
			return store.Fingerprint{}, end(quotes)
		}}
	}
	returns := func(err error) error { return err }
	panics := func(err error) error { panic(err) }
	bug := func(error) error { panic("a bug") }
	const withheld = "a string, which may have the key in it"
	said := func(name, value string) string { return "reprise: " + name + " panicked at policy_test.go:, " + value }
	for name, c := range map[string]struct {
		cfg  protocol.Config
		req  protocol.Request
		want string
		says string // how the error begins, and how it ends
	}{
		"an error of Fingerprint.Func":      {protocol.Config{Fingerprint: digest(returns)}, post, "request-invalid", ""},
		"a panic of Fingerprint.Func":       {protocol.Config{Fingerprint: digest(panics)}, post, "internal-error", ""},
		"a bug of Fingerprint.Func":         {protocol.Config{Fingerprint: digest(bug)}, post, "internal-error", said("Config.Fingerprint.Func", "a bug")},
		"an error of KeyFunc":               {protocol.Config{Key: find(returns)}, post, "key-invalid", ""},
		"a panic of KeyFunc":                {protocol.Config{Key: find(panics)}, post, "internal-error", ""},
		"a panic of KeyFunc with no header": {protocol.Config{Key: find(panics)}, protocol.Request{Method: "POST"}, "internal-error", ""},
		"a panic of KeyFunc with another header": {
			protocol.Config{Key: find(panics)}, protocol.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {"other"}}}, "internal-error", "",
		},
		"a panic of Skip": {protocol.Config{Skip: func(context.Context, *protocol.Request) bool { panic(quotes) }}, post, "internal-error", ""},
		"a bug of Skip":   {protocol.Config{Skip: func(context.Context, *protocol.Request) bool { panic("a bug") }}, post, "internal-error", said("Config.Skip", withheld)},
		"a panic of Problems.Write": {protocol.Config{Required: true, Problems: protocol.ProblemFormat{
			Write: func(context.Context, *protocol.Request, protocol.Problem) protocol.Response { panic(quotes) },
		}}, protocol.Request{Method: "POST"}, "key-missing", ""},
		"a bug of the scope function": {protocol.Config{}, post, "internal-error", said("the scope function", "a bug")},
	} {
		b, log := observed(t, c.cfg)
		a := b.guard.Admit(t.Context(), c.req, func() (string, error) {
			if strings.HasSuffix(name, "scope function") {
				panic("a bug")
			}
			return scope()
		})
		outcomes, err := log.outcomes()
		if !slices.Equal(outcomes, []string{" refused " + c.want}) || err == nil || strings.Contains(err.Error(), key) ||
			(a.Response.Status == 500) != (c.want == "internal-error") {
			t.Errorf("%s: %d %q, %v", name, a.Response.Status, outcomes, err)
			continue
		}
		if start, end, _ := strings.Cut(c.says, ", "); !strings.HasPrefix(err.Error(), start) || !strings.HasSuffix(err.Error(), end) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// Problems that take the place of a response come in the form of the policy, too.
func TestR45WriterSeesTheRequestAfterTheHandler(t *testing.T) {
	t.Parallel()
	records, claimed := memstore.New(), store.ClaimRequest{}
	takenOver := &hooked{Store: records}
	takenOver.OnClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
		claimed = r
		return records.Claim(ctx, r)
	}
	takenOver.OnComplete = func(ctx context.Context, r store.CompleteRequest) error {
		if err := records.Release(ctx, r.ID, r.Owner); err != nil {
			return err
		}
		other := claimed
		other.Owner = store.NewOwner()
		if _, err := records.Claim(ctx, other); err != nil {
			return err
		}
		return store.ErrLeaseLost
	}
	guard := setupOver(t, takenOver, protocol.Config{
		Problems: protocol.ProblemFormat{Write: func(ctx context.Context, r *protocol.Request, p protocol.Problem) protocol.Response {
			if _, inside := reprise.AttemptFrom(ctx); !inside {
				t.Error("the context is not the handler's")
			}
			return protocol.Response{Body: []byte(r.Path + " " + string(p.Code))}
		}},
	}).guard
	a := guard.Admit(t.Context(), protocol.Request{Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {"k"}}}, scope)
	defer a.Exchange.Close()
	reply := a.Exchange.Finish(protocol.Captured{Status: 201})
	if !reply.Replace || reply.Response.Status != 409 || string(reply.Response.Body) != "/orders in-progress" {
		t.Errorf("replied %+v", reply)
	}
}

func TestFingerprintHeaders(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Fingerprint: protocol.Fingerprinting{Headers: []string{"X-Version", "host", "HOST"}}})
	admit := func(host string, version ...string) int {
		a := b.guard.Admit(t.Context(), protocol.Request{
			Method: "POST", Host: host, Header: http.Header{"Idempotency-Key": {"k"}, "X-Version": version},
		}, scope)
		if a.Exchange != nil {
			finish(a.Exchange, 201)
			return 0
		}
		return a.Response.Status
	}
	for _, c := range []struct {
		want int
		got  func() int
	}{
		{0, func() int { return admit("live", "1") }},
		{201, func() int { return admit("LIVE", " 1\t") }},
		{422, func() int { return admit("sandbox", "1") }},
		{422, func() int { return admit("live", "2") }},
		{422, func() int { return admit("live", "1", "1") }},
		{422, func() int { return admit("live") }},
	} {
		if got := c.got(); got != c.want {
			t.Errorf("status %d, want %d", got, c.want)
		}
	}
}

// Fields that a policy omits may differ in a retry.
func TestFingerprintOmits(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON, Omit: []string{"/sent_at"}}})
	admit := func(body string) protocol.Admission {
		return b.guard.Admit(t.Context(), protocol.Request{
			Method: "POST", Header: http.Header{"Idempotency-Key": {"k"}, "Content-Type": {"application/json"}}, Body: strings.NewReader(body),
		}, scope)
	}
	first := admit(`{"amount": 1, "sent_at": 1}`).Exchange
	finish(first, 201)
	for body, want := range map[string]int{`{"amount": 1, "sent_at": 2}`: 201, `{"amount": 2, "sent_at": 1}`: 422} {
		if got := admit(body).Response.Status; got != want {
			t.Errorf("%s: status %d, want %d", body, got, want)
		}
	}
}

// A framework may give the context of a request to another one, and a handler that
// outlived a timeout asks whose it has.
func TestExchangeKnowsItsOwnContext(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	own, other := b.admit("own", "").Exchange, b.admit("other", "").Exchange
	derived, cancel := context.WithCancel(own.Context())
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // the case is the context
		want bool
	}{
		"its own": {own.Context(), true}, "one made of it": {derived, true}, "another's": {other.Context(), false}, "no exchange's": {t.Context(), false},
	} {
		if got := own.Runs(c.ctx); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	for _, x := range []*protocol.Exchange{own, other} {
		finish(x, 200)
	}
}

// The annotation of a response reaches the observer of a replay, and no client.
func TestAnnotationOfTheFirstRunComesWithTheReplay(t *testing.T) {
	t.Parallel()
	type trace struct{}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for what, c := range map[string]struct {
		annotate func(context.Context) string
		want     string
	}{
		"none":     {nil, ""},
		"a trace":  {func(ctx context.Context) string { return ctx.Value(trace{}).(string) }, parent},
		"a line":   {func(context.Context) string { return "a\nb" }, ""},
		"too long": {func(context.Context) string { return strings.Repeat("x", 256) }, ""},
		"a panic":  {func(context.Context) string { panic("a bug") }, ""},
	} {
		log, st := new(eventLog), memstore.New()
		engine := must(reprise.New(st, reprise.Config{Observer: log}))
		guard := must(protocol.Over(engine, protocol.Config{Keep: protocol.Keeping{Annotate: c.annotate}}))
		run := func(ctx context.Context) protocol.Admission {
			a := guard.Admit(ctx, protocol.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {"k"}}}, scope)
			if a.Exchange != nil {
				a.Exchange.Finish(protocol.Captured{Status: 201, Body: []byte("answer")}) //nolint:contextcheck // the attempt has its own
				a.Exchange.Close()
			}
			return a
		}
		run(context.WithValue(t.Context(), trace{}, parent))
		replay := run(t.Context()).Response
		rec := must(st.Inspect(t.Context(), store.DeriveID("tenant", "", "k")))
		last := log.events[len(log.events)-1]
		if replay.Status != 201 || string(replay.Body) != "answer" || last.Name() != "replayed" || last.Annotation != c.want {
			t.Errorf("%s: %d %q after %v with %q, want %q", what, replay.Status, replay.Body, last.Name(), last.Annotation, c.want)
		}
		for f := range replay.Header.All() {
			if strings.Contains(f.Value, parent) {
				t.Errorf("%s: the client gets it in %s", what, f.Name)
			}
		}
		if kept := must(record.Decode[record.Field](rec.Payload)); kept.Annotation != c.want {
			t.Errorf("%s: the record has %q", what, kept.Annotation)
		}
		if err := engine.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
