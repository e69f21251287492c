package protocol_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// transacting is a store whose handlers always have a transaction, which ends with an
// error.
type transacting struct {
	store.Store
	able, end  error
	rolledBack int
}

// Transacts implements [store.Transactor].
func (s *transacting) Transacts() error { return s.able }

// Transaction implements [store.Transactor].
func (s *transacting) Transaction(ctx context.Context, _ store.ID, _ store.Owner) (context.Context, store.Transaction) {
	return ctx, s
}

// Close implements [store.Transaction].
func (s *transacting) Close() bool { return true }

// Commit implements [store.Transaction].
func (s *transacting) Commit(ctx context.Context, r store.CompleteRequest) error {
	if s.end != nil {
		return s.end
	}
	return s.Complete(ctx, r)
}

// Rollback implements [store.Transaction].
func (s *transacting) Rollback(context.Context) error { s.rolledBack++; return nil }

// What the client of a transactional policy gets follows from the end of its transaction.
func TestRepliesOfATransactionalPolicy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end      error
		captured protocol.Captured
		want     protocol.Code
		rolls    int
	}{
		"committed":            {nil, protocol.Captured{Status: 201}, "", 0},
		"a failure":            {nil, protocol.Captured{Status: 503}, "", 1},
		"a cut success":        {nil, protocol.Captured{Status: 200, Cut: true}, protocol.CodeNotApplied, 1},
		"a large success":      {nil, protocol.Captured{Status: 200, Body: make([]byte, 11)}, protocol.CodeResponseTooLarge, 1},
		"rolled back":          {store.ErrNotApplied, protocol.Captured{Status: 201}, protocol.CodeNotApplied, 0},
		"undecided":            {store.ErrUnknown, protocol.Captured{Status: 201}, protocol.CodeStoreUnavailable, 0},
		"ended by the handler": {store.ErrMisconfigured, protocol.Captured{Status: 201}, protocol.CodeOutcomeUnknown, 0},
	} {
		st := &transacting{Store: memstore.New(), end: c.end}
		guard, err := protocol.New(st, protocol.Config{Transactional: true, Limits: protocol.Limits{ResponseBody: 10}})
		if err != nil {
			t.Fatal(err)
		}
		if lease := guard.Engine().Config().Lease; lease != 10*time.Second {
			t.Errorf("the default lease is %v, want 10s", lease)
		}
		b := &bench{t, guard}
		if got := replyCode(t, b.finish("k", c.captured)); got != c.want || st.rolledBack != c.rolls {
			t.Errorf("%s: %q after %d rollbacks, want %q after %d", name, got, st.rolledBack, c.want, c.rolls)
		}
		if err := guard.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A policy cannot promise what its store, or another field of it, does not allow.
func TestTransactionalPolicyIsRefused(t *testing.T) {
	t.Parallel()
	able := &transacting{Store: memstore.New()}
	for name, c := range map[string]struct {
		store store.Store
		cfg   protocol.Config
		says  string
	}{
		"a store without transactions": {memstore.New(), protocol.Config{Transactional: true}, "Config.Transactional: "},
		"one that cannot have them":    {&transacting{Store: memstore.New(), able: store.ErrInvalid}, protocol.Config{Transactional: true}, "Config.Transactional: "},
		"with FailOpen":                {able, protocol.Config{Transactional: true, FailOpen: true}, "Config.FailOpen: "},
	} {
		if _, err := protocol.New(c.store, c.cfg); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
		}
	}
	own, err := protocol.New(able, protocol.Config{Transactional: true, Engine: reprise.Config{Lease: time.Minute}})
	if err != nil || own.Engine().Config().Lease != time.Minute {
		t.Errorf("a lease of its own: %v", err)
	}
}
