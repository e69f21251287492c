package protocol_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// ledger is a store with a transaction for every handler. It remembers the completions,
// and which of them were without effects.
type ledger struct {
	atomically

	rolledBack bool
	discarded  []bool
}

// Transaction implements [store.Transactor].
func (l *ledger) Transaction(ctx context.Context, _ store.ID, _ store.Owner) (context.Context, store.Transaction) {
	return ctx, l
}

func (l *ledger) Close() bool { return true }

func (l *ledger) Commit(ctx context.Context, r store.CompleteRequest) error {
	return l.Complete(ctx, r)
}

func (l *ledger) Rollback(context.Context) error {
	l.rolledBack = true
	return nil
}

func (l *ledger) Complete(ctx context.Context, r store.CompleteRequest) error {
	l.discarded = append(l.discarded, l.rolledBack)
	return l.Store.Complete(ctx, r)
}

func setupAtomic(t *testing.T, cfg protocol.Config) (*bench, *ledger) {
	t.Helper()
	store := &ledger{atomically: atomically{memstore.New()}}
	return setupOver(t, store, cfg), store
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
	// Without a transaction, the client gets the handler's own response.
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
