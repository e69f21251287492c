package reprise_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// Where a test does not say otherwise, its engine has these.
const (
	lease     = 30 * time.Second
	retention = 24 * time.Hour
	budget    = 2 * time.Second
	margin    = lease / 10 // between the local deadline and the end of the lease
)

// bench is one process: an engine over a store that a test can interfere with, and its
// observer's events.
type bench struct {
	*reprise.Engine
	store  *hooked
	events *events
}

// setup makes a process over a new memory store, without abilities. It is closed at the
// end of the test.
func setup(t *testing.T, cfg reprise.Config) *bench {
	t.Helper()
	return setupOver(t, memstore.New(), cfg)
}

// setupOver makes a process over a store that it may share with others.
func setupOver(t *testing.T, inner store.Store, cfg reprise.Config) *bench {
	t.Helper()
	b := &bench{store: &hooked{Store: inner}, events: &events{}}
	b.Engine = newEngine(t, b.store, b.events, cfg)
	return b
}

// newEngine makes an engine that is closed at the end of the test, and fails it if
// something did not end by then.
func newEngine(t *testing.T, store store.Store, observer reprise.Observer, cfg reprise.Config) *reprise.Engine {
	t.Helper()
	if cfg.Observer == nil {
		cfg.Observer = observer
	}
	if cfg.Log == nil && cfg.Observer != nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	e := must(reprise.New(store, cfg))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Hour)
		defer cancel()
		if err := e.Close(ctx); err != nil && !t.Failed() {
			t.Errorf("at the end of the test: %v", err)
		}
		s := e.Stats()
		if s.Running != 0 {
			t.Errorf("attempts that begun are %d more than those that ended: %v, %v", s.Running, s.Outcomes, s.Ends)
		}
		if s.Waiting != 0 || s.Running == 0 && s.Leases != 0 {
			t.Errorf("%d wait, and %d leases are kept, after all have ended", s.Waiting, s.Leases)
		}
		if seen, ok := cfg.Observer.(*events); ok && s.EventsDropped == 0 {
			seen.wantCounted(t, s)
		}
	})
	return e
}

// order is an operation of the default preset.
func order(key string) reprise.Operation {
	return reprise.Operation{Scope: "tenant", Key: key, Fingerprint: store.Fingerprint{1}}
}

func idOf(op reprise.Operation) store.ID { return store.DeriveID(op.Scope, op.Endpoint, op.Key) }

// wait is op with patience.
func wait(op reprise.Operation, d time.Duration) reprise.Operation {
	op.Wait = d
	return op
}

// want begins op and fails the test unless the result is the wanted one.
func (b *bench) want(t *testing.T, op reprise.Operation, outcome reprise.Outcome) reprise.Result {
	t.Helper()
	return b.wantIn(t, t.Context(), op, outcome)
}

// wantIn is want for a request with a context.
func (b *bench) wantIn(t *testing.T, ctx context.Context, op reprise.Operation, outcome reprise.Outcome) reprise.Result {
	t.Helper()
	res, err := b.Begin(ctx, op)
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	if res.Outcome != outcome {
		t.Fatalf("Begin answered %v, want %v", res.Outcome, outcome)
	}
	if (res.Attempt != nil) != (outcome == reprise.Claimed || outcome == reprise.Unprotected) {
		t.Fatalf("%v with attempt %v", outcome, res.Attempt)
	}
	return res
}

// claim begins op, which must be free.
func (b *bench) claim(t *testing.T, op reprise.Operation) *reprise.Attempt {
	t.Helper()
	return b.want(t, op, reprise.Claimed).Attempt
}

// complete ends a and fails the test unless it answers as wanted.
func complete(t *testing.T, a *reprise.Attempt, payload string, want reprise.AttemptEnd) reprise.CompleteResult {
	t.Helper()
	end, err := a.Complete(reprise.Completion{Payload: []byte(payload)})
	if err != nil {
		t.Fatalf("Complete: %v", err)
	}
	if end.End != want {
		t.Fatalf("Complete answered %v (%v), want %v", end.End, end.Err, want)
	}
	return end
}

func release(t *testing.T, a *reprise.Attempt) {
	t.Helper()
	if err := a.Release(); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

// closeWithin closes e and gives it d.
func closeWithin(t *testing.T, e *reprise.Engine, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return e.Close(ctx)
}

// wantCause fails the test unless ctx is cancelled with the wanted cause, or not
// cancelled for nil.
func wantCause(t *testing.T, ctx context.Context, want error) {
	t.Helper()
	synctest.Wait()
	if got := context.Cause(ctx); !errors.Is(got, want) || (want == nil) != (ctx.Err() == nil) {
		t.Fatalf("cause %v (%v), want %v", got, ctx.Err(), want)
	}
}

type hooked = teststore.Hooked

var inTime, inTimeNamed, wantError = teststore.InTime, teststore.InTimeNamed, teststore.WantError

// events is an observer that remembers.
type events struct {
	mu   sync.Mutex
	list []reprise.Event
}

// Observe implements [reprise.Observer].
func (s *events) Observe(_ context.Context, e reprise.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, e)
}

// wantCounted fails the test unless the events agree with the counts.
func (s *events) wantCounted(t *testing.T, stats reprise.Stats) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.list {
		set := 0
		for _, is := range []bool{e.Outcome != 0, e.End != 0, e.Kind != nil} {
			if is {
				set++
			}
		}
		if set != 1 || e.Kind != nil && e.Counted {
			t.Errorf("not exactly one of outcome, end and kind, or a kind that counts: %+v", e)
		}
		switch {
		case !e.Counted:
		case e.Outcome != 0:
			stats.Outcomes[e.Outcome]--
		default:
			stats.Ends[e.End]--
		}
	}
	for o, n := range stats.Outcomes {
		if n != 0 {
			t.Errorf("%v is counted %d times more than events carry it", o, int64(n))
		}
	}
	for e, n := range stats.Ends {
		if n != 0 {
			t.Errorf("%v is counted %d times more than events carry it", e, int64(n))
		}
	}
}

// names returns the names of the events so far, in order.
func (s *events) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, len(s.list))
	for i, e := range s.list {
		names[i] = e.Name()
	}
	return names
}

// last returns the event that was observed last.
func (s *events) last() reprise.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[len(s.list)-1]
}

// want fails the test unless exactly these were observed, in order.
func (s *events) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := s.names(); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
}

// count returns how often an event of this name was observed.
func (s *events) count(name string) int {
	n := 0
	for _, k := range s.names() {
		if k == name {
			n++
		}
	}
	return n
}

// wantCount fails the test unless an event of this name was observed n times.
func (s *events) wantCount(t *testing.T, name string, n int) {
	t.Helper()
	if got := s.count(name); got != n {
		t.Errorf("%d events %q, want %d: %v", got, name, n, s.names())
	}
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
