package operate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

var (
	executed    = &store.Resolution{Payload: []byte("receipt 8812")}
	notExecuted = &store.Resolution{Forget: true}
)

// answering is a function for Reconcile with the same answer for every record.
func answering(answer *store.Resolution, err error) func(context.Context, store.Record) (*store.Resolution, error) {
	return func(context.Context, store.Record) (*store.Resolution, error) { return answer, err }
}

// unknown runs op and leaves its outcome unknown.
func (b *bench) unknown(t *testing.T, op reprise.Operation) {
	t.Helper()
	if err := b.want(t, op, reprise.Claimed).Attempt.Unknown("the bank timed out"); err != nil {
		t.Fatal(err)
	}
}

// reconcile makes a round that must not fail.
func (b *bench) reconcile(t *testing.T, answer *store.Resolution, c operate.ReconcileConfig) operate.Reconciled {
	t.Helper()
	return must(operate.Reconcile(t.Context(), b.records, answering(answer, nil), c))
}

func wantRound(t *testing.T, got, want operate.Reconciled) {
	t.Helper()
	if got != want {
		t.Errorf("the round counts %+v, want %+v", got, want)
	}
}

func TestReconcileResolvesByTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer *store.Resolution
		round  operate.Reconciled
		next   reprise.Outcome
	}{
		"executed":      {executed, operate.Reconciled{Executed: 1}, reprise.Replayed},
		"not executed":  {notExecuted, operate.Reconciled{NotExecuted: 1}, reprise.Claimed},
		"not known yet": {nil, operate.Reconciled{NotKnown: 1}, reprise.Lapsed},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			b.unknown(t, order("k"))
			running := b.want(t, order("running"), reprise.Claimed).Attempt
			complete := func(a *reprise.Attempt) {
				if end, err := a.Complete(reprise.Completion{Payload: []byte("answer")}); err != nil || end.End != reprise.EndRecorded {
					t.Errorf("completed: %v, %v", end.End, err)
				}
			}
			complete(b.want(t, order("done"), reprise.Claimed).Attempt)
			wantRound(t, b.reconcile(t, c.answer, operate.ReconcileConfig{Lapsed: true}), c.round)
			res := b.want(t, order("k"), c.next)
			if c.next == reprise.Replayed && string(res.Payload) != "receipt 8812" {
				t.Errorf("the retry gets %q", res.Payload)
			}
			if res.Attempt != nil {
				_ = res.Attempt.Release()
			}
			complete(running)
			if got := b.want(t, order("done"), reprise.Replayed); string(got.Payload) != "answer" {
				t.Errorf("a completed record has %q now", got.Payload)
			}
		})
	}
}

func TestReconcileSelects(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		dead := &bench{newEngine(t, unrenewing{b.records}, reprise.Config{}), b.records}
		lapsed := dead.want(t, order("lapsed"), reprise.Claimed).Attempt
		time.Sleep(2 * lease)
		labelled := order("labelled")
		labelled.Label = "payments"
		b.unknown(t, labelled)
		time.Sleep(time.Minute)
		b.unknown(t, order("new"))
		for name, c := range map[string]struct {
			config operate.ReconcileConfig
			asked  int
		}{
			"by default, the unknown": {operate.ReconcileConfig{}, 2},
			"with the lapsed":         {operate.ReconcileConfig{Lapsed: true}, 3},
			"of a label":              {operate.ReconcileConfig{Lapsed: true, Label: "payments"}, 1},
			"older than a minute":     {operate.ReconcileConfig{OlderThan: time.Minute}, 1},
			"older than an hour":      {operate.ReconcileConfig{Lapsed: true, OlderThan: time.Hour}, 0},
		} {
			if round := b.reconcile(t, nil, c.config); round.NotKnown != c.asked {
				t.Errorf("%s: asked about %d records, want %d", name, round.NotKnown, c.asked)
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
		ask  func(ctx context.Context) (*store.Resolution, error)
		want error
		text string
	}{
		"an error": {func(context.Context) (*store.Resolution, error) { return executed, errBank }, errBank, "the bank is away"},
		"a panic":  {func(context.Context) (*store.Resolution, error) { panic("a bug") }, nil, "panicked: a bug"},
		"too late": {func(ctx context.Context) (*store.Resolution, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, context.DeadlineExceeded, ""},
		"without a payload": {func(context.Context) (*store.Resolution, error) { return &store.Resolution{}, nil }, store.ErrInvalid, "neither Forget nor a Payload"},
		"a bad retention": {func(context.Context) (*store.Resolution, error) {
			return &store.Resolution{Payload: []byte("p"), Retention: -1}, nil
		}, store.ErrInvalid, "Retention"},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			b := setup(t, reprise.Config{})
			for i := range 3 {
				b.unknown(t, order(fmt.Sprint("secret-key-", i)))
			}
			bad := idOf(order("secret-key-1"))
			round, err := operate.Reconcile(t.Context(), b.records, func(ctx context.Context, r store.Record) (*store.Resolution, error) {
				if r.ID == bad {
					return c.ask(ctx)
				}
				return executed, nil
			}, operate.ReconcileConfig{Timeout: time.Second})
			wantRound(t, round, operate.Reconciled{Executed: 2, Failed: 1})
			if c.want != nil && !errors.Is(err, c.want) {
				t.Error(err)
			}
			if text := fmt.Sprint(err); !strings.Contains(text, c.text) || !strings.Contains(text, bad.Short()) || strings.Contains(text, "secret-key") {
				t.Errorf("the error is %q", text)
			}
			wantRound(t, b.reconcile(t, notExecuted, operate.ReconcileConfig{}), operate.Reconciled{NotExecuted: 1})
		})
	}
}

// Rounds of few records, four questions at once for ten seconds each, reach every record.
func TestReconcileIsBounded(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		const records = 57
		for i := range records {
			b.unknown(t, order(fmt.Sprint("k", i)))
		}
		running, most := 0, 0
		c := operate.ReconcileConfig{Limit: 10}
		asked := map[store.ID]int{}
		var mu sync.Mutex
		for rounds := 0; rounds == 0 || c.After != ""; rounds++ {
			round, err := operate.Reconcile(t.Context(), b.records, func(ctx context.Context, r store.Record) (*store.Resolution, error) {
				if until, ok := ctx.Deadline(); !ok || time.Until(until) != 10*time.Second || r.Reason != "the bank timed out" {
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
				return nil, nil
			}, c)
			if err != nil || round.NotKnown > 10 || round.NotKnown == 0 && round.Next != "" || rounds > 1000 {
				t.Fatalf("%+v, %v", round, err)
			}
			c.After = round.Next
		}
		if len(asked) != records || most != 4 {
			t.Errorf("asked about %d of %d records, %d at once, want 4", len(asked), records, most)
		}
	})
}

// A round whose context ends leaves the rest of its records to the next one.
func TestReconcileEndsWithItsContext(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		for i := range 9 {
			b.unknown(t, order(fmt.Sprint("k", i)))
		}
		errStop := errors.New("stopped")
		ctx, stop := context.WithCancelCause(t.Context())
		round, err := operate.Reconcile(ctx, b.records, func(ctx context.Context, _ store.Record) (*store.Resolution, error) {
			stop(errStop)
			return executed, nil
		}, operate.ReconcileConfig{Limit: 5})
		if !errors.Is(err, errStop) {
			t.Error(err)
		}
		if asked := round.Executed + round.Failed; round.Next != "" || asked < 1 || asked > 4 {
			t.Errorf("%+v", round)
		}
		if _, err := operate.Reconcile(ctx, b.records, answering(executed, nil), operate.ReconcileConfig{}); err == nil {
			t.Error("a round with an ended context succeeds")
		}
		if rest := b.reconcile(t, executed, operate.ReconcileConfig{}); rest.Executed != 9-round.Executed {
			t.Errorf("%+v, and then %+v", round, rest)
		}
	})
}

// What an attempt says between the question and the resolution is no part of the answer.
func TestReconcileLeavesALapseWhoseAttemptSaysUnknownMeanwhile(t *testing.T) {
	inTime(t, func(t *testing.T) {
		records := memstore.New()
		b := &bench{newEngine(t, unrenewing{records}, reprise.Config{}), records}
		a := b.want(t, order("k"), reprise.Claimed).Attempt
		time.Sleep(2 * lease)
		round, err := operate.Reconcile(t.Context(), b.records, func(context.Context, store.Record) (*store.Resolution, error) {
			return notExecuted, a.Unknown("the bank timed out") //nolint:contextcheck // the engine bounds it
		}, operate.ReconcileConfig{Lapsed: true})
		if err != nil {
			t.Error(err)
		}
		wantRound(t, round, operate.Reconciled{Changed: 1})
		if r := must(records.Inspect(t.Context(), idOf(order("k")))); r.State != store.StateUnknown || r.Reason != "the bank timed out" {
			t.Errorf("the record is %+v", r)
		}
	})
}

func TestReconcileRefusesAnInvalidCall(t *testing.T) {
	inTime(t, func(t *testing.T) {
		records := memstore.New()
		for name, c := range map[string]struct {
			st     store.Store
			ask    func(context.Context, store.Record) (*store.Resolution, error)
			config operate.ReconcileConfig
		}{
			"no function":      {records, nil, operate.ReconcileConfig{}},
			"no inspector":     {unrenewing{records}, answering(nil, nil), operate.ReconcileConfig{}},
			"negative limit":   {records, answering(nil, nil), operate.ReconcileConfig{Limit: -1}},
			"limit too large":  {records, answering(nil, nil), operate.ReconcileConfig{Limit: store.MaxPage + 1}},
			"negative timeout": {records, answering(nil, nil), operate.ReconcileConfig{Timeout: -1}},
			"negative age":     {records, answering(nil, nil), operate.ReconcileConfig{OlderThan: -1}},
			"a foreign cursor": {records, answering(nil, nil), operate.ReconcileConfig{After: "elsewhere"}},
			"a bad label":      {records, answering(nil, nil), operate.ReconcileConfig{Label: "\n"}},
		} {
			round, err := operate.Reconcile(t.Context(), c.st, c.ask, c.config)
			if !errors.Is(err, store.ErrInvalid) || round != (operate.Reconciled{}) {
				t.Errorf("%s: %+v, %v", name, round, err)
			}
		}
	})
}

// A resolution of the reconciler is as visible as an operator's: to the observer, or in
// the log where no engine is at hand.
func TestReconcileReportsItsResolutions(t *testing.T) {
	for name, c := range map[string]struct {
		answer    *store.Resolution
		forgotten bool
		reports   int
	}{
		"executed": {executed, false, 1}, "not executed": {notExecuted, true, 1}, "not known": {nil, false, 0},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			var events []reprise.Event
			b := setup(t, reprise.Config{Observer: reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
				if e.Kind == reprise.EventResolved {
					events = append(events, e)
				}
			})})
			op := order("k")
			op.Label = "payments"
			b.unknown(t, op)
			b.reconcile(t, c.answer, operate.ReconcileConfig{Engine: b.Engine})
			if len(events) != c.reports {
				t.Fatalf("reported %+v", events)
			}
			for _, e := range events {
				if e.Operator != "reconciler" || e.Reason == "" || e.Label != "payments" || e.Forgotten != c.forgotten || e.State != store.StateUnknown || e.Fence == 0 {
					t.Errorf("reported %+v", e)
				}
			}
		})
	}
}

func TestReconcileLogsWithoutAnEngine(t *testing.T) {
	text := new(bytes.Buffer)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(text, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, reprise.Config{Observer: reprise.Observers()})
		b.unknown(t, order("k"))
		b.reconcile(t, executed, operate.ReconcileConfig{})
	})
	if !strings.Contains(text.String(), "operator=reconciler") || !strings.Contains(text.String(), "state=unknown") {
		t.Errorf("the log has %q", text)
	}
}
