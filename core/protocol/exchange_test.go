package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
)

// ledger is a store whose claims are Atomic, and which remembers the completions that
// were to be rolled back.
type ledger struct {
	atomically

	discarded []bool
}

func (l *ledger) Complete(ctx context.Context, r store.CompleteRequest) error {
	l.discarded = append(l.discarded, r.DiscardEffects)
	return l.Store.Complete(ctx, r)
}

func setupAtomic(t *testing.T, cfg protocol.Config) (*bench, *ledger) {
	t.Helper()
	store := &ledger{atomically: atomically{memstore.New()}}
	engine := must(reprise.New(store, reprise.Config{}))
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	guard := must(protocol.Over(engine, cfg))
	return &bench{t, guard}, store
}

func (b *bench) finish(key string, c protocol.Captured) protocol.Reply {
	b.t.Helper()
	a := b.admit(key, "body")
	if a.Exchange == nil {
		b.t.Fatalf("%s: answered %d %s", key, a.Response.Status, a.Response.Body)
	}
	defer a.Exchange.Close()
	return a.Exchange.Finish(c)
}

// replyCode returns the code of the problem that a reply puts in place of the response.
func replyCode(t *testing.T, r protocol.Reply) protocol.Code {
	t.Helper()
	if !r.Replace {
		return ""
	}
	return admissionCode(t, protocol.Admission{Response: r.Response})
}

// The effects of a failure are rolled back, and its response is kept: a failure begins
// with 400.
func TestEffectsOfAFailureAreRolledBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		captured protocol.Captured
		want     []bool
	}{
		"200":               {protocol.Captured{Status: 200}, []bool{false}},
		"399":               {protocol.Captured{Status: 399}, []bool{false}},
		"400":               {protocol.Captured{Status: 400}, []bool{true}},
		"500":               {protocol.Captured{Status: 500}, []bool{true}},
		"a panic":           {protocol.Captured{Panicked: true}, []bool{true}},
		"a cut response":    {protocol.Captured{Status: 200, Cut: true}, []bool{true}},
		"401, not kept":     {protocol.Captured{Status: 401}, nil},
		"one that is large": {protocol.Captured{Status: 200, Body: make([]byte, 11)}, nil},
	} {
		b, store := setupAtomic(t, protocol.Config{Preset: reprise.AtMostOnce, Limits: protocol.Limits{ResponseBody: 10}})
		b.finish("k", c.captured)
		if !slices.Equal(store.discarded, c.want) {
			t.Errorf("%s: discarded %v, want %v", name, store.discarded, c.want)
		}
	}
}

// A success whose effects were rolled back never leaves as one; a failure does, and so
// does a response that has left already.
func TestRolledBackSuccessDoesNotLeave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		captured protocol.Captured
		want     protocol.Code
	}{
		"a cut success":           {protocol.Captured{Status: 200, Cut: true}, protocol.CodeNotApplied},
		"a cut redirect":          {protocol.Captured{Status: 399, Cut: true}, protocol.CodeNotApplied},
		"a cut failure":           {protocol.Captured{Status: 400, Cut: true}, ""},
		"one that was sent":       {protocol.Captured{Status: 200, Cut: true, Sent: true}, ""},
		"a panic":                 {protocol.Captured{Panicked: true}, ""},
		"a failure":               {protocol.Captured{Status: 500}, ""},
		"a large success":         {protocol.Captured{Status: 200, Body: make([]byte, 11)}, protocol.CodeResponseTooLarge},
		"a large one, cut":        {protocol.Captured{Status: 200, Oversize: true, Cut: true}, ""},
		"a large one, sent":       {protocol.Captured{Status: 200, Oversize: true, Sent: true}, ""},
		"a large one, panicked":   {protocol.Captured{Oversize: true, Panicked: true}, ""},
		"as large as can be kept": {protocol.Captured{Status: 200, Body: make([]byte, 10)}, ""},
	} {
		b, _ := setupAtomic(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 10}})
		if got := replyCode(t, b.finish("k", c.captured)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// Without an atomic store, the client gets the handler's own response.
	for _, c := range []protocol.Captured{{Status: 200, Cut: true}, {Status: 200, Oversize: true}} {
		if reply := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 10}}).finish("k", c); reply.Replace {
			t.Errorf("%+v is replaced by %d", c, reply.Response.Status)
		}
	}
}

// An empty body cannot be omitted: its replay is the response itself.
func TestR36OmittedBodyThatIsEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for body, omitted := range map[string]string{"": "", "x": "omitted"} {
		key := "k" + body
		b.run(key, func(w *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
			protocol.OmitBody(x.Context())
			w.WriteHeader(http.StatusCreated)
			_, _ = w.WriteString(body)
		})
		if again := b.replay(key); again.Code != 201 || again.Header().Get("Idempotency-Body") != omitted || (again.Body.Len() > 0) != (omitted != "") {
			t.Errorf("a body %q is replayed as %d %v %q", body, again.Code, again.Header(), again.Body)
		}
	}
}

// Captured.Body is ignored with Oversize: an adapter that sets it does not have the whole
// body.
func TestBodyOfAnOversizeResponseIsIgnored(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 999, 1000} {
		o := offload(t, nil)
		o.finish("key", protocol.Captured{Status: 201, Body: large(size), Oversize: true})
		o.wantSummary("key")
		if names := o.store.names(); len(names) > 0 {
			t.Errorf("%d bytes of a body that is larger are offloaded as %v", size, names)
		}
	}
}

// Payload makes the stored form of a response that is kept whole, and refuses another
// one.
func TestPayloadKeepsWholeResponses(t *testing.T) {
	t.Parallel()
	many := make([]protocol.Field, 65)
	for i := range many {
		many[i] = protocol.Field{Name: "X", Value: "v", Add: i > 0}
	}
	b := setup(t, protocol.Config{Limits: protocol.Limits{ResponseBody: 10}})
	a := b.admit("k", "body")
	defer a.Exchange.Close()
	for what, c := range map[string]struct {
		r  protocol.Response
		ok bool
	}{
		"the first status":      {protocol.Response{Status: 200}, true},
		"the last status":       {protocol.Response{Status: 999}, true},
		"an interim status":     {protocol.Response{Status: 199}, false},
		"a status of 4 digits":  {protocol.Response{Status: 1000}, false},
		"no status":             {protocol.Response{}, false},
		"as much as is kept":    {protocol.Response{Status: 200, Body: make([]byte, 10)}, true},
		"a byte more":           {protocol.Response{Status: 200, Body: make([]byte, 11)}, false},
		"as many fields":        {protocol.Response{Status: 200, Header: protocol.NewHeader(many[:64]...)}, true},
		"a field more":          {protocol.Response{Status: 200, Header: protocol.NewHeader(many...)}, false},
		"trailers":              {protocol.Response{Status: 200, Trailer: protocol.NewHeader(many[0])}, false},
		"a stream":              {protocol.Response{Status: 200, Stream: http.NoBody}, false},
		"a field to be removed": {protocol.Response{Status: 200, Header: protocol.NewHeader(protocol.Field{Name: "X", Remove: true})}, true},
	} {
		payload, err := protocol.Payload(a.Exchange.Context(), c.r)
		if c.ok != (err == nil) || !c.ok && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
		if want, err := stored.Encode(c.r); c.ok && (err != nil || !bytes.Equal(payload, want)) {
			t.Errorf("%s: kept as %q, want %q, %v", what, payload, want, err)
		}
	}
	a.Exchange.Finish(protocol.Captured{Status: 200})
	if _, err := protocol.Payload(t.Context(), protocol.Response{Status: 200}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("outside of a handler: %v", err)
	}

	engine := must(reprise.New(broken{memstore.New(), store.ErrUnavailable}, reprise.Config{Log: slog.New(slog.DiscardHandler)}))
	guard := must(protocol.Over(engine, protocol.Config{FailOpen: true}))
	open := (&bench{t, guard}).admit("k", "body")
	if _, err := protocol.Payload(open.Exchange.Context(), protocol.Response{Status: 200}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("in a handler that runs unprotected: %v", err)
	}
	open.Exchange.Finish(protocol.Captured{Status: 200})
	open.Exchange.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = engine.Close(ended)
}

// One response has one sealed payload, however often it is asked for; another response
// has another one.
func TestPayloadOfOneResponseIsOne(t *testing.T) {
	t.Parallel()
	b, _, _ := setupSealed(t, protocol.Config{Seal: protocol.Sealing{Secret: secret(t, "1")}})
	a := b.admit("k", "body")
	defer a.Exchange.Close()
	var made []string
	for _, body := range []string{"first", "second", "second", "first"} {
		payload := must(protocol.Payload(a.Exchange.Context(), protocol.Response{Status: 200, Body: []byte(body)}))
		made = append(made, string(payload))
		if strings.Contains(string(payload), body) {
			t.Errorf("%s is in the clear", body)
		}
	}
	if made[0] == made[1] || made[1] != made[2] || made[2] == made[3] {
		t.Error("a payload is not that of its response, or one response has two in a row")
	}
	a.Exchange.Finish(protocol.Captured{Status: 200})
}
