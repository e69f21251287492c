package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

var (
	executed    = &store.Resolution{Payload: []byte("receipt 8812"), Fence: 99} // which Reconcile replaces
	notExecuted = &store.Resolution{Forget: true}
)

const settled = time.Millisecond // the least that Reconcile takes

// answering is a function for Reconcile with the same answer for every record.
func answering(answer *store.Resolution, err error) func(context.Context, reprise.Record) (*store.Resolution, error) {
	return func(context.Context, reprise.Record) (*store.Resolution, error) { return answer, err }
}

// shown is a process over a store that shows its records.
func shown(t *testing.T, st store.Store) *bench {
	t.Helper()
	seen := &events{}
	return &bench{Engine: newEngine(t, st, seen, reprise.Config{}), events: seen}
}

// inspected is a store whose calls must be bounded, and its pages small. The resolution
// of one record may fail.
type inspected struct {
	*memstore.Store
	t     *testing.T
	fails func(id store.ID) error
}

func (s *inspected) List(ctx context.Context, q store.Query) (store.Page, error) {
	s.bounded(ctx, q.Limit == 100)
	return s.Store.List(ctx, q)
}

func (s *inspected) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	s.bounded(ctx, r.Fence != 99)
	if err := s.fails(id); err != nil {
		return err
	}
	return s.Store.Resolve(ctx, id, r)
}

func (s *inspected) bounded(ctx context.Context, sound bool) {
	if until, _ := ctx.Deadline(); time.Until(until) != 30*time.Second || !sound {
		s.t.Errorf("called within %v, sound: %v", time.Until(until), sound)
	}
}

// lapses claims op in a process that renews no lease, and waits until it has lapsed.
func lapses(t *testing.T, records store.Store, op reprise.Operation) *reprise.Attempt {
	t.Helper()
	b := setupOver(t, records, reprise.Config{})
	b.store.OnRenew = func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
		return nil, store.ErrUnavailable
	}
	a := b.claim(t, op)
	time.Sleep(2 * lease)
	return a
}

func payment(key string) reprise.Operation {
	op := order(key)
	op.Label = "payments"
	return op
}

// unknown runs op and leaves its outcome unknown.
func (b *bench) unknown(t *testing.T, op reprise.Operation) {
	t.Helper()
	if err := b.claim(t, op).Unknown("the bank timed out"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(settled)
}

// reconcile asks about the payments, and must not fail.
func (b *bench) reconcile(t *testing.T, answer *store.Resolution) reprise.Reconciled {
	t.Helper()
	return must(b.Reconcile(t.Context(), "payments", settled, answering(answer, nil)))
}

func wantReconciled(t *testing.T, got, want reprise.Reconciled) {
	t.Helper()
	if got != want {
		t.Errorf("the call counts %+v, want %+v", got, want)
	}
}

// A resolution of the reconciler is as visible as an operator's.
func TestReconcileResolvesByTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer *store.Resolution
		counts reprise.Reconciled
		next   reprise.Outcome
		events int
	}{
		"executed":      {executed, reprise.Reconciled{Executed: 1}, reprise.Replayed, 1},
		"not executed":  {notExecuted, reprise.Reconciled{NotExecuted: 1}, reprise.Claimed, 1},
		"not known yet": {nil, reprise.Reconciled{NotKnown: 1}, reprise.Lapsed, 0},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			records := memstore.New()
			b := shown(t, records)
			b.unknown(t, payment("k"))
			running := b.claim(t, payment("running"))
			complete(t, b.claim(t, payment("done")), "answer", reprise.EndRecorded)
			wantReconciled(t, b.reconcile(t, c.answer), c.counts)
			b.events.wantCount(t, "resolved", c.events)
			if e := b.events.last(); c.events > 0 && (e.Operator != "reconciler" || strings.Contains(e.Reason, "not") != c.answer.Forget || e.ID != idOf(payment("k")) || e.Label != "payments" ||
				e.Forgotten != c.answer.Forget || e.State != store.StateUnknown || e.Fence == 0) {
				t.Errorf("reported %+v", e)
			}
			res := b.want(t, payment("k"), c.next)
			if kept := must(records.Inspect(t.Context(), idOf(payment("k")))); c.next == reprise.Replayed && (string(res.Payload) != "receipt 8812" || kept.Retention != retention) {
				t.Errorf("the retry gets %q for %v", res.Payload, kept.Retention)
			}
			if res.Attempt != nil {
				release(t, res.Attempt)
			}
			complete(t, running, "answer", reprise.EndRecorded)
			if got := b.want(t, payment("done"), reprise.Replayed); string(got.Payload) != "answer" {
				t.Errorf("a completed record has %q now", got.Payload)
			}
		})
	}
}

func TestReconcileSelects(t *testing.T) {
	inTime(t, func(t *testing.T) {
		records := memstore.New()
		b := shown(t, records)
		lapsed := lapses(t, records, payment("lapsed"))
		b.unknown(t, order("unlabelled"))
		time.Sleep(time.Minute)
		b.unknown(t, payment("new"))
		for name, c := range map[string]struct {
			label     string
			olderThan time.Duration
			asked     int
		}{
			"of a label":          {"payments", settled, 2},
			"of another label":    {"refunds", settled, 0},
			"older than a minute": {"payments", time.Minute, 1},
			"older than an hour":  {"payments", time.Hour, 0},
		} {
			got := must(b.Reconcile(t.Context(), c.label, c.olderThan, answering(nil, nil)))
			if got.NotKnown != c.asked {
				t.Errorf("%s: asked about %d records, want %d", name, got.NotKnown, c.asked)
			}
		}
		_ = lapsed.Release()
	})
}

// One record whose question fails keeps no other from being resolved, and is asked about
// again in the next round.
func TestReconcileReportsFailures(t *testing.T) {
	errBank := errors.New("the bank is away")
	for name, c := range map[string]struct {
		ask  func(context.Context, reprise.Record) (*store.Resolution, error)
		fail func() error // of the store
		want error
		text string
	}{
		"an error": {answering(executed, errBank), nil, errBank, "the bank is away"},
		"a panic":  {func(context.Context, reprise.Record) (*store.Resolution, error) { panic("a bug") }, nil, nil, "panicked: a bug"},
		"too late": {func(ctx context.Context, _ reprise.Record) (*store.Resolution, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, nil, context.DeadlineExceeded, ""},
		"an end of its goroutine": {func(context.Context, reprise.Record) (*store.Resolution, error) { runtime.Goexit(); return nil, nil }, nil, nil, "ended its goroutine"},
		"a change elsewhere":      {answering(nil, store.ErrRecordChanged), nil, store.ErrRecordChanged, ""},
		"without a payload":       {answering(&store.Resolution{}, nil), nil, store.ErrInvalid, "neither Forget nor a Payload"},
		"a bad retention":         {answering(&store.Resolution{Payload: []byte("p"), Retention: -1}, nil), nil, store.ErrInvalid, "Retention"},
		"a panic of the store":    {answering(executed, nil), func() error { panic("a bug") }, store.ErrUnknown, "panicked: a bug"},
		"an end in the store":     {answering(executed, nil), func() error { runtime.Goexit(); return nil }, store.ErrUnknown, "ended its goroutine"},
		"a lost reply":            {answering(executed, nil), func() error { return errors.New("reply lost") }, store.ErrUnknown, "reply lost"},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			bad := idOf(payment("secret-key-1"))
			b := shown(t, &inspected{memstore.New(), t, func(id store.ID) error {
				if id == bad && c.fail != nil {
					return c.fail()
				}
				return nil
			}})
			for i := range 3 {
				b.unknown(t, payment(fmt.Sprint("secret-key-", i)))
			}
			got, err := b.Reconcile(t.Context(), "payments", settled, func(ctx context.Context, r reprise.Record) (*store.Resolution, error) {
				if r.ID == bad {
					return c.ask(ctx, r)
				}
				return executed, nil
			})
			wantReconciled(t, got, reprise.Reconciled{Executed: 2, Failed: 1})
			if c.want != nil && !errors.Is(err, c.want) {
				t.Error(err)
			}
			if text := fmt.Sprint(err); !strings.Contains(text, c.text) || !strings.Contains(text, bad.Short()) || strings.Contains(text, "secret-key") {
				t.Errorf("the error is %q", text)
			}
			c.fail = nil
			wantReconciled(t, b.reconcile(t, notExecuted), reprise.Reconciled{NotExecuted: 1})
		})
	}
}

// Parts of the listing, four questions at once for 30 seconds each, and a hundred errors:
// every record is reached.
func TestReconcileIsBounded(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := shown(t, memstore.New())
		const records = 257
		for i := range records {
			b.unknown(t, payment(fmt.Sprint("k", i)))
		}
		running, most := 0, 0
		asked := map[store.ID]int{}
		var mu sync.Mutex
		errBank := errors.New("the bank is away")
		got, err := b.Reconcile(t.Context(), "payments", settled, func(ctx context.Context, r reprise.Record) (*store.Resolution, error) {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) != 30*time.Second || r.Reason != "the bank timed out" {
				t.Errorf("asked for %v about %+v", time.Until(until), r)
			}
			mu.Lock()
			running++
			most = max(most, running)
			asked[r.ID]++
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			running--
			return nil, errBank
		})
		wantReconciled(t, got, reprise.Reconciled{Failed: records})
		if n := strings.Count(fmt.Sprint(err), errBank.Error()); n != 100 {
			t.Errorf("the error names %d records", n)
		}
		if len(asked) != records || most != 4 {
			t.Errorf("asked about %d of %d records, %d at once, want 4", len(asked), records, most)
		}
	})
}

// A call whose context ends leaves the rest of the records to the next one.
func TestReconcileEndsWithItsContext(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := shown(t, memstore.New())
		for i := range 9 {
			b.unknown(t, payment(fmt.Sprint("k", i)))
		}
		errStop := errors.New("stopped")
		ctx, stop := context.WithCancelCause(t.Context())
		got, err := b.Reconcile(ctx, "payments", settled, func(context.Context, reprise.Record) (*store.Resolution, error) {
			stop(errStop)
			return executed, nil
		})
		wantError(t, "Reconcile", err, errStop)
		if asked := got.Executed + got.Failed; asked < 1 || asked > 4 {
			t.Errorf("%+v", got)
		}
		_, err = b.Reconcile(ctx, "payments", settled, answering(executed, nil))
		wantError(t, "a call with an ended context", err, errStop)
		if rest := b.reconcile(t, executed); rest.Executed != 9-got.Executed {
			t.Errorf("%+v, and then %+v", got, rest)
		}
	})
}

// What an attempt says between the question and the resolution is no part of the answer.
func TestReconcileLeavesALapseWhoseAttemptSaysUnknownMeanwhile(t *testing.T) {
	inTime(t, func(t *testing.T) {
		records := memstore.New()
		a := lapses(t, records, payment("k"))
		got, err := shown(t, records).Reconcile(t.Context(), "payments", settled, func(context.Context, reprise.Record) (*store.Resolution, error) {
			return notExecuted, a.Unknown("the bank timed out") //nolint:contextcheck // the engine bounds it
		})
		if err != nil {
			t.Error(err)
		}
		wantReconciled(t, got, reprise.Reconciled{Changed: 1})
		if r := must(records.Inspect(t.Context(), idOf(payment("k")))); r.State != store.StateUnknown || r.Reason != "the bank timed out" {
			t.Errorf("the record is %+v", r)
		}
	})
}

func TestReconcileRefusesAnInvalidCall(t *testing.T) {
	inTime(t, func(t *testing.T) {
		ask := answering(nil, nil)
		for name, c := range map[string]struct {
			st        store.Store
			label     string
			olderThan time.Duration
			ask       func(context.Context, reprise.Record) (*store.Resolution, error)
		}{
			"no function":  {memstore.New(), "payments", settled, nil},
			"no inspector": {&hooked{Store: memstore.New()}, "payments", settled, ask},
			"no age":       {memstore.New(), "payments", 0, ask},
			"negative age": {memstore.New(), "payments", -1, ask},
			"no label":     {memstore.New(), "", settled, ask},
			"a bad label":  {memstore.New(), "\n", settled, ask},
		} {
			got, err := shown(t, c.st).Reconcile(t.Context(), c.label, c.olderThan, c.ask)
			if !errors.Is(err, store.ErrInvalid) || got != (reprise.Reconciled{}) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	})
}
