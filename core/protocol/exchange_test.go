package protocol_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

func (b *bench) finish(key string, c protocol.Captured) protocol.Reply {
	b.t.Helper()
	a := b.admit(key, "body")
	wantRun(b.t, a)
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
		want     string
	}{
		"200":               {protocol.Captured{Status: 200}, "[close commit]"},
		"399":               {protocol.Captured{Status: 399}, "[close commit]"},
		"400":               {protocol.Captured{Status: 400}, "[close rollback complete]"},
		"500":               {protocol.Captured{Status: 500}, "[close rollback complete]"},
		"a panic":           {protocol.Captured{Panicked: true}, "[close rollback complete]"},
		"a cut response":    {protocol.Captured{Status: 200, Cut: true}, "[close rollback complete]"},
		"401, not kept":     {protocol.Captured{Status: 401}, "[close rollback]"},
		"one that is large": {protocol.Captured{Status: 200, Body: make([]byte, 11)}, "[close rollback]"},
	} {
		store := atomically(memstore.New())
		setupOver(t, store, protocol.Config{Preset: reprise.AtMostOnce, Limits: protocol.Limits{ResponseBody: 10}}).finish("k", c.captured)
		if got := fmt.Sprint(store.Calls); got != c.want {
			t.Errorf("%s: the transaction was called %s, want %s", name, got, c.want)
		}
	}
}

// The reply of a transactional policy follows from the end of its transaction.
// A success whose effects were rolled back never leaves as one; a failure does, and so
// does a response that has left already.
func TestRepliesOfATransactionalPolicy(t *testing.T) {
	t.Parallel()
	limits := protocol.Limits{ResponseBody: 10}
	for name, c := range map[string]struct {
		end      error // of the transaction
		captured protocol.Captured
		want     protocol.Code
		rolls    bool
	}{
		"committed":               {nil, protocol.Captured{Status: 201}, "", false},
		"as large as can be kept": {nil, protocol.Captured{Status: 200, Body: make([]byte, 10)}, "", false},
		"a failure":               {nil, protocol.Captured{Status: 503}, "", true},
		"a panic":                 {nil, protocol.Captured{Panicked: true}, "", true},
		"a cut success":           {nil, protocol.Captured{Status: 200, Cut: true}, protocol.CodeNotApplied, true},
		"a cut redirect":          {nil, protocol.Captured{Status: 399, Cut: true}, protocol.CodeNotApplied, true},
		"a cut failure":           {nil, protocol.Captured{Status: 400, Cut: true}, "", true},
		"one that was sent":       {nil, protocol.Captured{Status: 200, Cut: true, Sent: true}, "", true},
		"a large success":         {nil, protocol.Captured{Status: 200, Body: make([]byte, 11)}, protocol.CodeResponseTooLarge, true},
		"a large one, cut":        {nil, protocol.Captured{Status: 200, Oversize: true, Cut: true}, "", true},
		"a large one, sent":       {nil, protocol.Captured{Status: 200, Oversize: true, Sent: true}, "", true},
		"a large one, panicked":   {nil, protocol.Captured{Oversize: true, Panicked: true}, "", true},
		"rolled back":             {store.ErrNotApplied, protocol.Captured{Status: 201}, protocol.CodeNotApplied, false},
		"undecided":               {store.ErrUnknown, protocol.Captured{Status: 201}, protocol.CodeStoreUnavailable, false},
		"ended by the handler":    {store.ErrMisconfigured, protocol.Captured{Status: 201}, protocol.CodeOutcomeUnknown, false},
		"ended, and refused":      {store.ErrMisconfigured, protocol.Captured{Status: 404}, protocol.CodeOutcomeUnknown, true},
		"ended, and failed":       {store.ErrMisconfigured, protocol.Captured{Status: 500}, protocol.CodeOutcomeUnknown, true},
		"ended, and cut":          {store.ErrMisconfigured, protocol.Captured{Status: 200, Cut: true}, protocol.CodeOutcomeUnknown, true},
		"ended, and large":        {store.ErrMisconfigured, protocol.Captured{Status: 200, Oversize: true}, protocol.CodeOutcomeUnknown, true},
		"ended, and sent":         {store.ErrMisconfigured, protocol.Captured{Status: 500, Sent: true}, "", true},
	} {
		st := &transacting{Store: memstore.New(), OnCommit: func() error { return c.end }, Undo: c.end}
		b := setupOver(t, st, protocol.Config{Limits: limits})
		if got := replyCode(t, b.finish("k", c.captured)); got != c.want || slices.Contains(st.Calls, "rollback") != c.rolls {
			t.Errorf("%s: %q after %v, want %q, rolled back: %t", name, got, st.Calls, c.want, c.rolls)
		}
	}
	// A call commits with its message, and an error is kept without its effects.
	for _, c := range []struct {
		end    error
		result protocol.CallResult
		rolls  bool
		want   bool
	}{
		{nil, protocol.CallResult{Type: "a.B"}, false, false},
		{nil, protocol.CallResult{Code: 9}, true, false},
		{store.ErrNotApplied, protocol.CallResult{Type: "a.B"}, false, true},
	} {
		st := &transacting{Store: memstore.New(), OnCommit: func() error { return c.end }}
		a := setupOver(t, st, protocol.Config{}).guard.AdmitCall(t.Context(), protocol.Call{
			Procedure: "/a.B/C", Metadata: http.Header{"Idempotency-Key": {"k"}}, Message: func() ([]byte, error) { return nil, nil },
		}, func() (string, error) { return "tenant", nil })
		if reply := a.Exchange.FinishCall(c.result); reply.Replace != c.want || slices.Contains(st.Calls, "rollback") != c.rolls {
			t.Errorf("a call that ends with %d, %v: %+v after %v, rolled back: %t", c.result.Code, c.end, reply, st.Calls, c.rolls)
		}
		a.Exchange.Close()
	}
	// Without a transaction, the client gets the handler's own response.
	for _, c := range []protocol.Captured{{Status: 200, Cut: true}, {Status: 200, Oversize: true}} {
		if reply := setup(t, protocol.Config{Limits: limits}).finish("k", c); reply.Replace {
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

// A policy cannot promise what its store, or another field of it, does not allow.
func TestTransactionalPolicyIsRefused(t *testing.T) {
	t.Parallel()
	able := atomically(memstore.New())
	for name, c := range map[string]struct {
		store store.Store
		cfg   protocol.Config
		says  string
	}{
		"a store without transactions": {memstore.New(), protocol.Config{Transactional: true}, "Config.Transactional: "},
		"one that cannot have them":    {&transacting{Store: memstore.New(), Able: store.ErrInvalid}, protocol.Config{Transactional: true}, "Config.Transactional: "},
		"with FailOpen":                {able, protocol.Config{Transactional: true, FailOpen: true}, "Config.FailOpen: "},
	} {
		if _, err := protocol.New(c.store, c.cfg); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
		}
	}
	for own, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Minute: time.Minute} {
		guard := must(protocol.New(able, protocol.Config{Transactional: true, Engine: reprise.Config{Lease: own}}))
		if lease := guard.Engine().Config().Lease; lease != want {
			t.Errorf("the lease is %v with %v in the configuration, want %v", lease, own, want)
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
