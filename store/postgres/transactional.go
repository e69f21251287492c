package reprisepg

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
)

// spareConns is how many connections of the pool the attempts never take: so many are left to answer duplicates and to find out
// what became of a COMMIT.
const spareConns = 2

// TransactionalStore runs each attempt in one transaction, which its handler finds by [Tx]. The rows that the handler writes there and
// the stored response commit together or not at all, over any number of retries, crashes and pauses.
//
// An attempt has no lease. A crashed process, or one whose connection broke, loses its attempt at once, and the next
// request with the key runs. An attempt that outlasts [Config.TxTimeout] is rolled back.
//
// It is safe for concurrent use and starts no goroutine; each attempt holds one connection of the pool until it is completed or
// released, at most MaxConns − 2 attempts at once. A claim beyond that fails with ErrUnavailable.
//
// Besides [reprise.Store] it is a [reprise.Checker], a [reprise.ContextBinder], a [reprise.Inspector] and a [reprise.Purger].
type TransactionalStore struct {
	records
	slots chan struct{} // one value for each attempt that runs

	mu       sync.Mutex
	attempts map[reprise.Owner]*attempt  // those that run
	doubts   map[reprise.Owner]time.Time // owners whose last call has no definite answer, and since when
}

var (
	_ reprise.Store         = (*TransactionalStore)(nil)
	_ reprise.ContextBinder = (*TransactionalStore)(nil)
	_ reprise.Checker       = (*TransactionalStore)(nil)
	_ reprise.Inspector     = (*TransactionalStore)(nil)
	_ reprise.Purger        = (*TransactionalStore)(nil)
)

// NewTransactional returns the transactional store over pool with the default configuration. The tables must exist: see
// [Migrate]. A pool that cannot work, such as one of fewer than three connections, makes every call fail with
// ErrMisconfigured; nothing is asked of the server here.
func NewTransactional(pool *pgxpool.Pool) *TransactionalStore {
	return newTransactional(newRecords(pool, Config{}))
}

// NewTransactionalWithConfig is [NewTransactional] with a configuration. The error wraps ErrMisconfigured.
func NewTransactionalWithConfig(pool *pgxpool.Pool, c Config) (*TransactionalStore, error) {
	s := newTransactional(newRecords(pool, c))
	if s.broken != nil {
		return nil, s.broken
	}
	return s, nil
}

func newTransactional(t records, _ error) *TransactionalStore {
	s := &TransactionalStore{
		records:  t,
		attempts: make(map[reprise.Owner]*attempt),
		doubts:   make(map[reprise.Owner]time.Time),
	}
	if s.broken != nil {
		return s
	}
	conns := int(t.pool.Config().MaxConns)
	if conns <= spareConns {
		s.broken = fmt.Errorf("%w: a pool of %d connections, the transactional store needs at least %d",
			reprise.ErrMisconfigured, conns, spareConns+1)
		return s
	}
	s.slots = make(chan struct{}, conns-spareConns)
	return s
}

// Claim implements [reprise.Store]. Its claims are Atomic, with a transaction open for the handler. A different request with the key
// of an attempt that runs in another process is answered InProgress: nobody sees the fingerprint before it commits.
func (s *TransactionalStore) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return reprise.ClaimResult{}, err
	}
	if s.broken != nil {
		return reprise.ClaimResult{}, s.broken
	}
	if a := s.find(r.ID, r.Owner); a != nil {
		return a.result(), nil
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return s.claimReadOnly(ctx, r)
	}
	a, result, err := s.begin(ctx, r)
	if a == nil {
		<-s.slots
	}
	if errors.Is(err, reprise.ErrUnknown) {
		s.doubt(r.Owner)
	}
	return result, err
}

// Renew implements [reprise.Store]. An attempt of this store needs no renewal and is answered Renewed while it runs here; leased
// records in the same table are renewed.
func (s *TransactionalStore) Renew(ctx context.Context, rs []reprise.RenewRequest) ([]reprise.RenewStatus, error) {
	statuses, err := s.renew(ctx, rs)
	for i := range statuses {
		if s.find(rs[i].ID, rs[i].Owner) != nil {
			statuses[i] = reprise.Renewed
		}
	}
	return statuses, err
}

// Complete implements [reprise.Store]: it stores the response in the transaction of the attempt and commits. Where the answer to
// the COMMIT is lost, it takes the attempt's lock on another connection, so that nothing can be committing any more,
// and looks. ErrNotApplied is certain; ErrUnknown says that the lock or the server was not to be had before ctx ended. A handler that
// ended the transaction by itself makes it ErrMisconfigured, because nobody can tell what it committed.
func (s *TransactionalStore) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if s.broken != nil {
		return s.broken
	}
	a := s.take(r.ID, r.Owner)
	if a == nil {
		if s.inDoubt(r.Owner) {
			return s.settle(ctx, r.ID, r.Owner)
		}
		return s.complete(ctx, r)
	}
	s.doubt(r.Owner)
	err := a.commit(ctx, &s.sql, r)
	if err != nil {
		_ = a.rollback(ctx) // of what is left: the lock is free before the answer is out
	}
	s.end(a)
	if errors.Is(err, reprise.ErrUnknown) && ctx.Err() == nil {
		return s.settle(ctx, r.ID, r.Owner)
	}
	if !errors.Is(err, reprise.ErrUnknown) && !errors.Is(err, reprise.ErrNotReplicated) {
		s.settled(r.Owner)
	}
	return err
}

// Release implements [reprise.Store]: it rolls the transaction of the attempt back.
func (s *TransactionalStore) Release(ctx context.Context, id reprise.ID, owner reprise.Owner) error {
	if s.broken != nil {
		return s.broken
	}
	a := s.take(id, owner)
	if a == nil {
		s.settled(owner) // a claim without an answer: its session ends with its connection
		return nil
	}
	defer s.end(a)
	return a.rollback(ctx)
}

// Bind implements [reprise.ContextBinder]: it makes the transaction of the attempt available to [Tx].
func (s *TransactionalStore) Bind(ctx context.Context, id reprise.ID, owner reprise.Owner) context.Context {
	if a := s.find(id, owner); a != nil {
		return context.WithValue(ctx, txKey{}, a.tx)
	}
	return ctx
}

// lockKey names the lock of an attempt. Advisory locks belong to the whole database, so the table is in it.
func (s *TransactionalStore) lockKey(id reprise.ID) int64 {
	sum := sha256.Sum256(append([]byte(s.sql.lock+"\x00"), id[:]...))
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // any 64 bits do
}

// find returns the attempt of owner that runs here, or nil.
func (s *TransactionalStore) find(id reprise.ID, owner reprise.Owner) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.attempts[owner]; a != nil && a.id == id {
		return a
	}
	return nil
}

// take returns the attempt of owner and makes the caller the one who ends it, or returns nil.
func (s *TransactionalStore) take(id reprise.ID, owner reprise.Owner) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[owner]
	if a == nil || a.id != id {
		return nil
	}
	delete(s.attempts, owner)
	return a
}

// end gives back what an attempt holds.
func (s *TransactionalStore) end(a *attempt) {
	a.close()
	<-s.slots
}

// doubt remembers that the fate of owner's last call is not known, and forgets the oldest of what nobody asked about again.
func (s *TransactionalStore) doubt(owner reprise.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for o, since := range s.doubts {
		if now.Sub(since) > 2*s.config.TxTimeout {
			delete(s.doubts, o)
		}
	}
	s.doubts[owner] = now
}

func (s *TransactionalStore) inDoubt(owner reprise.Owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.doubts[owner]
	return found
}

// settled forgets a doubt.
func (s *TransactionalStore) settled(owner reprise.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.doubts, owner)
}
