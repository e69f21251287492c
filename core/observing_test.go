package reprise_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// One observer that blocked kept every other handler from being cancelled when its lease
// was lost.
func TestBlockedObserverDelaysNoCancellation(t *testing.T) {
	inTime(t, func(t *testing.T) {
		block := make(chan struct{})
		var blocked atomic.Int64
		seen := &events{}
		b := setup(t, reprise.Config{Observer: reprise.ObserverFunc(func(ctx context.Context, e reprise.Event) {
			seen.Observe(ctx, e)
			if e.Name() == "lease-lost" || e.Name() == "store-error" {
				blocked.Add(1)
				<-block
			}
		})})
		unrenewed(b)
		const n = 20
		attempts, cancelled := make([]*reprise.Attempt, n), new(atomic.Int64)
		for i := range attempts {
			attempts[i] = b.claim(t, order(strconv.Itoa(i)))
			start, ctx := time.Now(), attempts[i].Context()
			context.AfterFunc(ctx, func() {
				if errors.Is(context.Cause(ctx), store.ErrLeaseLost) && time.Since(start) <= lease-margin {
					cancelled.Add(1)
				}
			})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(lease)
		synctest.Wait()
		if cancelled.Load() != n {
			t.Errorf("%d of %d were cancelled by their local deadline", cancelled.Load(), n)
		}
		if blocked.Load() != 1 {
			t.Errorf("the observer is called %d times at once, want by one goroutine", blocked.Load())
		}
		complete(t, b.claim(t, order("another")), "answer", reprise.EndRecorded) // a request's own events are its own
		b.want(t, order("another"), reprise.Replayed)
		if s := b.Stats(); s.EventsQueued < n-1 {
			t.Errorf("%+v, want the events queued", s)
		}
		close(block)
		synctest.Wait()
		if got := seen.count("lease-lost"); got != n {
			t.Errorf("%d losses reported after all, want %d", got, n)
		}
		if s := b.Stats(); s.EventsQueued != 0 || s.EventsDropped != 0 {
			t.Errorf("%+v", s)
		}
		for _, a := range attempts {
			release(t, a)
		}
	})
}

func TestQueuedEventsAreBounded(t *testing.T) {
	inTime(t, func(t *testing.T) {
		const queue, n = 4096, 6000
		block := make(chan struct{})
		seen := &events{}
		b := setup(t, reprise.Config{Observer: reprise.ObserverFunc(func(ctx context.Context, e reprise.Event) {
			if e.Name() == "renewed" {
				<-block
			}
			seen.Observe(ctx, e)
		})})
		attempts := make([]*reprise.Attempt, n)
		for i := range attempts {
			attempts[i] = b.claim(t, order(strconv.Itoa(i)))
		}
		time.Sleep(lease / 2)
		synctest.Wait()
		if s := b.Stats(); s.EventsQueued != queue || s.EventsDropped != n-queue-1 { // one is with the observer
			t.Errorf("%+v, want %d queued and the others dropped", s, queue)
		}
		for _, a := range attempts {
			wantCause(t, a.Context(), nil)
			release(t, a)
		}
		close(block)
		if err := closeWithin(t, b.Engine, time.Second); err != nil {
			t.Error(err)
		}
		if got := seen.count("renewed"); got != queue+1 {
			t.Errorf("Close left %d of %d events in the queue", queue+1-got, queue+1)
		}
	})
}

// Not parallel: it replaces the default logger.
func TestEngineLogsForOperators(t *testing.T) {
	log := &buffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		st := &hooked{Store: memstore.New()}
		st.OnComplete = func(context.Context, store.CompleteRequest) error { return store.ErrFull }
		quiet, loud := newEngine(t, st, nil, reprise.Config{Log: slog.New(slog.DiscardHandler)}), newEngine(t, st, nil, reprise.Config{MaxRun: time.Hour})
		cause := errors.New("cause-of-this-test")
		fail := func(err error) {
			st.OnClaim = func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
				return store.ClaimResult{}, fmt.Errorf("%w: %w", err, cause)
			}
		}
		for _, e := range []*reprise.Engine{quiet, loud} {
			fail(store.ErrMisconfigured)
			for range 100 { // logged once
				_, _ = e.Begin(t.Context(), order("misconfigured"))
			}
			fail(store.ErrCorrupt)
			_, _ = e.Begin(t.Context(), order("corrupt"))
			fail(store.ErrFull)
			_, _ = e.Begin(t.Context(), order("full"))
			st.OnClaim = nil
			res, err := e.Begin(t.Context(), order("unrecorded"))
			if err != nil || res.Attempt == nil {
				t.Fatal(res, err)
			}
			complete(t, res.Attempt, "answer", reprise.EndUnrecorded)
			time.Sleep(lease)
			strict := order("unrecorded")
			strict.MaxAttempts = 1
			if res, err := e.Begin(t.Context(), strict); err != nil || res.Outcome != reprise.Lapsed {
				t.Fatal(res, err)
			}
			if err := e.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if e == quiet && log.String() != "" {
				t.Errorf("a discarding logger is not silent: %s", log)
			}
			a := newEngine(t, st, nil, reprise.Config{Log: slog.New(slog.DiscardHandler)})
			res = must(a.Begin(t.Context(), order("unrecorded")))
			release(t, res.Attempt)
		}
	})
	text := log.String()
	for message, level := range map[string]string{
		"the store is misconfigured": "ERROR", "a record cannot be read": "ERROR", "a result was sent that is not recorded": "ERROR",
		"was given up": "ERROR", "the outcome of its last attempt is unknown": "WARN", "lost its lease": "WARN",
	} {
		if strings.Count(text, message) != 1 || !strings.Contains(text, "level="+level+" msg=\"reprise: ") {
			t.Errorf("%q is logged %d times, want once:\n%s", message, strings.Count(text, message), text)
		}
	}
	full := strings.Count(text, "the store is full") // for the thirty seconds of the lease, every ten
	if full != 3 || strings.Count(text, "\n") != 6+full || !strings.Contains(text, "cause-of-this-test") || !strings.Contains(text, "skipped=") {
		t.Errorf("logged\n%s", text)
	}
}

// Every event is either logged for operators or decided to be of no interest.
func TestOperatorLogKnowsEveryEvent(t *testing.T) {
	t.Parallel()
	silent := map[string]bool{
		"claimed": true, "replayed": true, "in-progress": true, "mismatch": true, "expired": true,
		"renewed": true, "completed": true, "released": true, "not-applied": true, "declared": true,
	}
	list := []reprise.Event{{Outcome: reprise.Claimed, Attempt: 2}}
	for _, outcome := range reprise.Outcomes() {
		list = append(list, reprise.Event{Outcome: outcome})
	}
	for _, end := range reprise.AttemptEnds() {
		list = append(list, reprise.Event{End: end})
	}
	for _, kind := range []*reprise.EventKind{
		reprise.EventRenewed, reprise.EventLeaseLost, reprise.EventRunTooLong, reprise.EventStoreError, reprise.EventResolved, reprise.EventDeclared,
	} {
		list = append(list, reprise.Event{Kind: kind})
	}
	names := map[string]bool{}
	for _, e := range list {
		name := e.Name()
		if name == "refused" && e.Outcome != reprise.Failed {
			continue // below
		}
		names[name] = true
		e.Err, e.Label, e.ID = store.ErrFull, "orders", store.ID{1}
		text := logged(e)
		if silent[name] != (text == "") || !silent[name] && !strings.Contains(text, "label=orders id=010000000000 error=") {
			t.Errorf("%s is logged as %q", name, text)
		}
	}
	if len(names) != 24 {
		t.Errorf("%d names of events: %v", len(names), names)
	}
	if text := logged(reprise.Event{End: reprise.EndNotApplied, Reason: "the bank timed out"}); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "the bank timed out") {
		t.Errorf("an unknown outcome that no record has is logged as %q", text)
	}
	for _, e := range []reprise.Event{ // told by another event, expected, or caused by a client
		{Kind: reprise.EventStoreError, Err: store.ErrUnavailable},
		{Outcome: reprise.Unavailable, Err: store.ErrMisconfigured},
		{Outcome: reprise.Unavailable, Err: store.ErrClosed},
		{Outcome: reprise.Corrupt, Err: store.ErrCorrupt},
		{Outcome: reprise.KeyMissing},
		{Outcome: reprise.KeyInvalid},
		{Outcome: reprise.TooLarge},
		{Outcome: reprise.RequestInvalid},
	} {
		if text := logged(e); text != "" {
			t.Errorf("%+v is logged as %q", e, text)
		}
	}
	if text := logged(reprise.Event{Outcome: reprise.Unavailable, Err: store.ErrUnknown}); !strings.Contains(text, "no definite result") {
		t.Errorf("an outage is logged as %q", text)
	}
	for cause, says := range map[error]string{
		errors.New("tenant database: connection refused"): "scope function failed", store.ErrInvalid: "scope is empty or invalid",
	} {
		if text := logged(reprise.Event{Outcome: reprise.ScopeMissing, Err: cause}); !strings.Contains(text, "level=WARN") || !strings.Contains(text, says) {
			t.Errorf("an unknown scope is logged as %q", text)
		}
	}
	forgotten := reprise.Event{Kind: reprise.EventResolved, State: store.StateCompleted, Forgotten: true, Reason: "ticket 7"}
	if text := logged(forgotten, reprise.Event{Kind: reprise.EventResolved, State: store.StateLapsed, Reason: "ticket 8"}); strings.Count(text, "ticket") != 2 ||
		!strings.Contains(text, "state=completed forgotten=true") || !strings.Contains(text, "state=lapsed forgotten=false") {
		t.Errorf("two resolutions are logged as %q", text)
	}
}

func logged(list ...reprise.Event) string {
	log := &buffer{}
	e, err := reprise.New(memstore.New(), reprise.Config{Log: slog.New(slog.NewTextHandler(log, nil)), MaxRun: time.Hour})
	if err != nil {
		panic(err)
	}
	for _, event := range list {
		e.Report(context.Background(), event)
	}
	return log.String()
}

// The log for operators counts the skipped messages of each kind, and distinguishes a
// stream with a key from an unreachable store.
func TestOperatorLogCountsSkippedMessages(t *testing.T) {
	inTime(t, func(t *testing.T) {
		text := &buffer{}
		e := must(reprise.New(memstore.New(), reprise.Config{Log: slog.New(slog.NewTextHandler(text, nil)), MaxRun: time.Hour}))
		panicked := reprise.Event{Kind: &reprise.EventKind{Name: "panic", Level: slog.LevelError, Message: "reprise: a function of the policy panicked"}}
		e.Report(t.Context(), panicked)
		if got := text.String(); strings.Contains(got, "skipped") || strings.Count(got, "\n") != 1 {
			t.Errorf("first: %s", got)
		}
		e.Report(t.Context(), panicked)
		e.Report(t.Context(), panicked)
		time.Sleep(10 * time.Second)
		e.Report(t.Context(), panicked)
		if got := text.String(); strings.Count(got, "skipped=2") != 1 || strings.Count(got, "\n") != 2 {
			t.Errorf("later: %s", got)
		}
		e.Report(t.Context(), reprise.Event{Outcome: reprise.Unprotected})
		if got := text.String(); !strings.Contains(got, "cannot be protected") || strings.Contains(got, "the store is unavailable") {
			t.Errorf("a stream: %s", got)
		}
		e.Refuse(t.Context(), "", reprise.Unprotected, nil)
		if got := text.String(); !strings.Contains(got, "the store is unavailable") {
			t.Errorf("fail open: %s", got)
		}
		resolved := reprise.Event{Kind: reprise.EventResolved, State: store.StateLapsed, Operator: "anna", Reason: "booked"}
		for range 3 { // several after an outage
			e.Report(t.Context(), resolved)
		}
		time.Sleep(10 * time.Second)
		e.Report(t.Context(), resolved)
		if got := text.String(); strings.Count(got, "the record of an operation was resolved") != 4 || strings.Count(got, "skipped") != 1 {
			t.Errorf("resolutions are all logged, and none skipped: %s", got)
		}
	})
}

func TestStatsCountByLabel(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		orders, refunds := order("k"), order("r")
		orders.Label, refunds.Label = "orders", "refunds"
		a := b.claim(t, orders)
		b.want(t, orders, reprise.InProgress)
		complete(t, a, "answer", reprise.EndRecorded)
		b.want(t, orders, reprise.Replayed)
		running := b.claim(t, refunds)
		b.Refuse(t.Context(), "refunds", reprise.KeyMissing, nil)

		s := b.Stats()
		for label, want := range map[string]map[reprise.Outcome]uint64{
			"orders":  {reprise.Claimed: 1, reprise.InProgress: 1, reprise.Replayed: 1},
			"refunds": {reprise.Claimed: 1, reprise.KeyMissing: 1},
		} {
			got := s.Labels[label].Outcomes
			if len(got) != len(reprise.Outcomes()) {
				t.Errorf("%s has %d outcomes, want every one", label, len(got))
			}
			for _, o := range reprise.Outcomes() {
				if got[o] != want[o] {
					t.Errorf("%s: %v is counted %d times, want %d", label, o, got[o], want[o])
				}
			}
		}
		if s.Outcomes[reprise.Claimed] != 2 || s.Ends[reprise.EndRecorded] != 1 || len(s.Ends) != len(reprise.AttemptEnds()) {
			t.Errorf("in all %v, %v", s.Outcomes, s.Ends)
		}
		if s.Running != 1 || s.Leases != 1 || s.Labels["refunds"].Running != 1 || s.Labels["orders"].Running != 0 {
			t.Errorf("%+v", s)
		}
		release(t, running)
	})
}

// Labels that never end, such as one for each request, do not fill the memory.
func TestLabelsAreBounded(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		var all sync.WaitGroup
		for n := range 1500 {
			all.Go(func() { b.Refuse(t.Context(), "label-"+strconv.Itoa(n), reprise.KeyMissing, nil) })
		}
		all.Wait()
		s := b.Stats()
		if len(s.Labels) != 1001 || s.Labels["(others)"].Outcomes[reprise.KeyMissing] != 500 || s.Outcomes[reprise.KeyMissing] != 1500 {
			t.Errorf("%d labels, of others %v", len(s.Labels), s.Labels["(others)"].Outcomes)
		}
	})
}

// A policy has its counts, and observers their series, before its first request.
func TestDeclaredLabelsAreCountedFromZero(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		for _, label := range []string{"orders", "orders", "caf\u00e9"} {
			b.Declare(label)
		}
		labels := b.Stats().Labels
		if n, ok := labels["orders"].Outcomes[reprise.Lapsed]; len(labels) != 1 || !ok || n != 0 {
			t.Errorf("counted are %v", labels)
		}
		if names := b.events.names(); len(names) != 2 || b.events.list[0].Label != "orders" || names[0] != "declared" {
			t.Errorf("observed are %v", names)
		}
	})
}
