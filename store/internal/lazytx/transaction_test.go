package lazytx

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// session notes the calls that end it.
type session struct {
	mu    sync.Mutex
	calls []string
	over  bool // Expire gives the connection back
	err   error
}

func (s *session) note(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
}

func (s *session) Refuse()               { s.note("refuse") }
func (s *session) Expire() (bool, error) { s.note("expire"); return s.over, s.err }
func (s *session) End(back func()) {
	s.note("end")
	back()
}

func (s *session) Commit(context.Context, *store.CompleteRequest) error {
	s.note("commit")
	return s.err
}

func (s *session) Rollback(context.Context) error { s.note("rollback"); return s.err }

// transactions returns those of one slot, whose sessions take an hour to begin.
func transactions(s *session) *Transactions {
	return &Transactions{
		Name: "test", Timeout: 24 * time.Hour, Slots: &slots.Slots{Limit: 1},
		Open: func(ctx context.Context, _ store.ID, _ store.Owner) (Session, error) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
				return nil, store.ErrBusy
			}
			s.note("begin")
			return s, nil
		},
		Find: func(context.Context, store.ID, store.Owner) error { s.note("find"); return nil },
	}
}

func want(t *testing.T, all *Transactions, s *session, calls ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.calls, calls) {
		t.Errorf("the session was called %v, want %v", s.calls, calls)
	}
	if used := all.Usage()[0].Used; used != 0 {
		t.Errorf("%d slots are taken at the end", used)
	}
}

var completion = store.CompleteRequest{Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}}

// TestCallsOfAHandlerBeginOneTransaction: calls at once wait for the first, and each may
// give up.
func TestCallsOfAHandlerBeginOneTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(session)
		all := transactions(s)
		ctx, tx := all.Bind(t.Context(), store.ID{}, store.Owner{})
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				if got, err := Begin(ctx, "test"); err != nil || got != Session(s) {
					t.Errorf("begin: %v, %v", got, err)
				}
			})
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, err := Begin(short, "test"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a caller that gives up: %v", err)
		}
		group.Wait()
		if _, err := Begin(ctx, "another"); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a handler of another store: %v", err)
		}
		if !tx.Close() {
			t.Error("it is not begun")
		}
		if _, err := Begin(ctx, "test"); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("after its attempt: %v", err)
		}
		if err := tx.Commit(t.Context(), completion); err != nil {
			t.Error(err)
		}
		want(t, all, s, "begin", "refuse", "commit", "end")
	})
}

// TestTransactionsEnd: each way ends a session once, and gives its slot back.
func TestTransactionsEnd(t *testing.T) {
	t.Parallel()
	commit := func(ctx context.Context, tx *Transaction) error { return tx.Commit(ctx, completion) }
	invalid := func(ctx context.Context, tx *Transaction) error { return tx.Commit(ctx, store.CompleteRequest{}) }
	rollback := func(ctx context.Context, tx *Transaction) error { return tx.Rollback(ctx) }
	ended := store.ErrMisconfigured // by its handler
	for name, c := range map[string]struct {
		end           func(context.Context, *Transaction) error
		fails         error // Commit, Rollback and Expire
		outlast, over bool  // over: Expire gives the connection back
		err           error
		calls         []string
	}{
		"committed":                            {commit, nil, false, false, nil, []string{"begin", "refuse", "commit", "end"}},
		"found":                                {commit, store.ErrUnknown, false, false, nil, []string{"begin", "refuse", "commit", "end", "find"}},
		"refused":                              {commit, store.ErrLeaseLost, false, false, store.ErrLeaseLost, []string{"begin", "refuse", "commit", "end"}},
		"an invalid completion":                {invalid, nil, false, false, store.ErrNotApplied, []string{"begin", "refuse", "rollback", "end"}},
		"an invalid one, ended":                {invalid, ended, false, false, ended, []string{"begin", "refuse", "rollback", "end"}},
		"rolled back":                          {rollback, nil, false, false, nil, []string{"begin", "refuse", "rollback", "end"}},
		"too long":                             {commit, nil, true, false, store.ErrNotApplied, []string{"begin", "expire", "refuse", "rollback", "end"}},
		"too long, and ended":                  {commit, ended, true, false, ended, []string{"begin", "expire", "refuse", "rollback", "end"}},
		"too long, and its connection is back": {commit, nil, true, true, store.ErrNotApplied, []string{"begin", "expire", "end", "refuse"}},
		"too long, ended, and it is back":      {rollback, ended, true, true, ended, []string{"begin", "expire", "end", "refuse"}},
		"too long, and rolled back":            {rollback, nil, true, false, nil, []string{"begin", "expire", "refuse", "rollback", "end"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &session{over: c.over, err: c.fails}
				all := transactions(s)
				ctx, tx := all.Bind(t.Context(), store.ID{}, store.Owner{})
				if _, err := Begin(ctx, "test"); err != nil {
					t.Fatal(err)
				}
				if c.outlast {
					time.Sleep(25 * time.Hour)
				}
				if !tx.Close() {
					t.Error("it is not begun")
				}
				if err := c.end(t.Context(), tx); !errors.Is(err, c.err) {
					t.Errorf("%v, want %v", err, c.err)
				}
				time.Sleep(48 * time.Hour) // no watchdog is left
				want(t, all, s, c.calls...)
			})
		})
	}
}

// TestAttemptEndsWhileItsTransactionBegins: by giving up, or by ending what began anyway.
func TestAttemptEndsWhileItsTransactionBegins(t *testing.T) {
	t.Parallel()
	for name, stubborn := range map[string]bool{"gives up": false, "began anyway": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := new(session)
				all := transactions(s)
				if open := all.Open; stubborn {
					all.Open = func(ctx context.Context, id store.ID, owner store.Owner) (Session, error) {
						return open(context.WithoutCancel(ctx), id, owner)
					}
				}
				ctx, tx := all.Bind(t.Context(), store.ID{}, store.Owner{})
				failed := make(chan error, 1)
				go func() { _, err := Begin(ctx, "test"); failed <- err }()
				synctest.Wait()
				if tx.Close() {
					t.Error("it is begun")
				}
				if err := <-failed; err == nil {
					t.Error("a handler got a transaction after its attempt")
				}
				calls := []string{"begin", "end"}
				if !stubborn {
					calls = nil
				}
				want(t, all, s, calls...)
			})
		})
	}
}

// TestFailedBeginningLeavesNoSlot: it may panic as well, and the next call tries again.
func TestFailedBeginningLeavesNoSlot(t *testing.T) {
	t.Parallel()
	s := new(session)
	all := &Transactions{Name: "test", Timeout: time.Hour, Slots: &slots.Slots{Limit: 1}}
	ctx, tx := all.Bind(t.Context(), store.ID{}, store.Owner{})
	all.Open = func(context.Context, store.ID, store.Owner) (Session, error) { panic("a tracer") }
	func() {
		defer func() { _ = recover() }()
		_, _ = Begin(ctx, "test")
	}()
	all.Open = func(context.Context, store.ID, store.Owner) (Session, error) { return nil, store.ErrUnavailable }
	if _, err := Begin(ctx, "test"); !errors.Is(err, store.ErrUnavailable) {
		t.Error(err)
	}
	all.Open = func(context.Context, store.ID, store.Owner) (Session, error) { return s, nil }
	if _, err := Begin(ctx, "test"); err != nil {
		t.Error(err)
	}
	tx.Close()
	_ = tx.Rollback(t.Context())
	want(t, all, s, "refuse", "rollback", "end")
}

// TestNestedAttemptHasItsOwn transaction, or none, and never that of the attempt that it
// is inside of: their ends are two.
func TestNestedAttemptHasItsOwn(t *testing.T) {
	t.Parallel()
	all := &Transactions{Name: "test", Timeout: time.Hour, Open: func(context.Context, store.ID, store.Owner) (Session, error) { return new(session), nil }}
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	begin := func(ctx context.Context, key string) (context.Context, Session) {
		t.Helper()
		got, err := engine.Begin(ctx, reprise.Operation{Scope: "tenant", Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Begin(got.Attempt.Context(), "test"); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want no transaction", key, err)
		}
		bound, tx := all.Bind(got.Attempt.Context(), store.ID{}, store.Owner{})
		s, err := Begin(bound, "test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			tx.Close()
			_ = tx.Rollback(context.WithoutCancel(t.Context()))
			_ = got.Attempt.Release()
		})
		return bound, s
	}
	ctx, outer := begin(t.Context(), "outer")
	if _, inner := begin(ctx, "inner"); inner == outer {
		t.Error("the inner attempt has the transaction of the outer one")
	}
}
