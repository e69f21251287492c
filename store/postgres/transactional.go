package reprisepg

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
)

// spareConns is how many connections of the pool the attempts never take: so many are
// left to answer duplicates and to find out what became of a COMMIT.
const spareConns = 2

// TransactionalStore runs each attempt in one transaction, which its handler finds by
// [Tx], or by [SQLTx] over a *sql.DB. The rows that the handler writes there and the
// stored response commit together or not at all, over any number of retries, crashes
// and pauses.
//
// An attempt has no lease. A crashed process, or one whose connection broke, loses its
// attempt at once, and the next request with the key runs. An attempt that outlasts
// [Config.TxTimeout] is rolled back.
//
// It is safe for concurrent use and starts no goroutine. Each attempt holds one
// connection of the pool until it is completed or released, at most MaxConns − 2 attempts
// at once. Claims beyond that wait, first come, first served, until shortly before their
// context ends, and then fail with ErrUnavailable; a replay or a duplicate waits 10 ms.
// See [TransactionalStore.Stats].
//
// Besides [reprise.Store] it is a [reprise.Checker], a [reprise.ContextBinder], a
// [reprise.Inspector] and a [reprise.Purger].
type TransactionalStore struct {
	records
	slots  slots
	recent recent

	// noClientCheck says that the server cannot look after a client while it runs a
	// statement: its operating system does not tell.
	noClientCheck atomic.Bool

	mu        sync.Mutex
	attempts  map[reprise.Owner]*attempt   // those that run and were not ended
	running   map[reprise.ID]*attempt      // those whose transaction is open
	claiming  map[reprise.ID]chan struct{} // claims on their way; closed at their end
	undecided map[reprise.Owner]time.Time  // owners whose last call has no definite answer, and since when
}

var (
	_ reprise.Store         = (*TransactionalStore)(nil)
	_ reprise.ContextBinder = (*TransactionalStore)(nil)
	_ reprise.Checker       = (*TransactionalStore)(nil)
	_ reprise.Inspector     = (*TransactionalStore)(nil)
	_ reprise.Purger        = (*TransactionalStore)(nil)
)

// NewTransactional returns the transactional store over pool, which needs at least
// three connections and should have ten or more. It asks nothing of the server:
// [OpenTransactional] does. The tables must exist: see [Migrate]. The error wraps
// ErrInvalid.
func NewTransactional(pool *pgxpool.Pool, c Config) (*TransactionalStore, error) {
	return newTransactional(database{pool: pool}, c)
}

// NewTransactionalSQL is [NewTransactional] for a *sql.DB over pgx's driver
// (github.com/jackc/pgx/v5/stdlib); handlers find their transaction by [SQLTx]. With
// another driver every call fails with ErrMisconfigured. Call SetMaxOpenConns before,
// and SetMaxIdleConns with the same number: database/sql keeps two idle connections
// unless told otherwise, and opens and closes the others all the time.
func NewTransactionalSQL(db *sql.DB, c Config) (*TransactionalStore, error) {
	return newTransactional(database{sql: db}, c)
}

// OpenTransactional is [NewTransactional], and then a check that refuses, with
// ErrMisconfigured, a server on which a guarantee does not hold: one without the
// tables, for example. Warnings go to [Config.Logger].
func OpenTransactional(ctx context.Context, pool *pgxpool.Pool, c Config) (*TransactionalStore, error) {
	s, err := NewTransactional(pool, c)
	if err != nil {
		return nil, err
	}
	if err := refuseUnsafe(ctx, s, s.config.Logger); err != nil {
		return nil, err
	}
	return s, nil
}

// OpenTransactionalSQL is [OpenTransactional] for a *sql.DB: see [NewTransactionalSQL].
func OpenTransactionalSQL(ctx context.Context, db *sql.DB, c Config) (*TransactionalStore, error) {
	s, err := NewTransactionalSQL(db, c)
	if err != nil {
		return nil, err
	}
	if err := refuseUnsafe(ctx, s, s.config.Logger); err != nil {
		return nil, err
	}
	return s, nil
}

func newTransactional(db database, c Config) (*TransactionalStore, error) {
	r, err := newRecords(db, c)
	if err != nil {
		return nil, err
	}
	switch limit := db.use().limit; {
	case limit == 0:
		return nil, invalid("the *sql.DB has no limit of connections; call SetMaxOpenConns with 10 or more")
	case limit <= spareConns:
		return nil, invalid("the pool has %d connections; the transactional store needs at least %d, and should have 10 or more", limit, spareConns+1)
	default:
		return &TransactionalStore{
			records:   r,
			slots:     slots{limit: limit - spareConns},
			attempts:  make(map[reprise.Owner]*attempt),
			running:   make(map[reprise.ID]*attempt),
			claiming:  make(map[reprise.ID]chan struct{}),
			undecided: make(map[reprise.Owner]time.Time),
		}, nil
	}
}

// Stats returns how many attempts run, and how many claims wait for one of them to end.
func (s *TransactionalStore) Stats() Stats { return s.slots.stats() }

// Claim implements [reprise.Store]. Its claims are Atomic, with a transaction open for
// the handler. A different request with the key of an attempt that runs in another
// process is answered InProgress: nobody sees the fingerprint before it commits.
func (s *TransactionalStore) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	if err := r.Validate(); err != nil {
		return reprise.ClaimResult{}, err
	}
	result, done, err := s.enterClaim(ctx, r)
	if done || err != nil {
		return result, err
	}
	defer s.leaveClaim(r.ID)
	result, err = s.claim(ctx, r)
	if err == nil {
		s.count(result)
	}
	return result, err
}

// claim is Claim for the one claim of its ID on its way.
func (s *TransactionalStore) claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	result, done, err := s.waitForSlot(ctx, r)
	if done || err != nil {
		return result, err
	}
	granted := false
	defer func() { // also when a tracer of the application panics
		if !granted {
			s.slots.release()
		}
	}()
	var a *attempt
	a, result, err = s.begin(ctx, r)
	for range 2 { // things that it learns to do without
		if errors.Is(err, errAdapted) {
			a, result, err = s.begin(ctx, r)
		}
	}
	if errors.Is(err, reprise.ErrUnknown) {
		s.setUndecided(r.Owner)
	}
	if a == nil {
		return result, err
	}
	granted = true
	a.start()
	s.mu.Lock()
	s.attempts[a.owner] = a
	s.running[a.id] = a
	delete(s.undecided, a.owner)
	s.mu.Unlock()
	return result, nil
}

// enterClaim answers a claim from what this process knows, or from a look at the record
// while replays are common. Otherwise it makes the claim the only one of its ID on its
// way, so that a storm of duplicates takes one slot. Where it returns neither an answer
// nor an error, leaveClaim has to follow.
func (s *TransactionalStore) enterClaim(ctx context.Context, r reprise.ClaimRequest) (result reprise.ClaimResult, done bool, err error) {
	look := s.recent.replaysCommon()
	for {
		if look {
			result, done, err := s.claimBySight(ctx, r)
			if done || err != nil {
				return result, done, err
			}
		}
		s.mu.Lock()
		if a := s.attempts[r.Owner]; a != nil && a.id == r.ID {
			s.mu.Unlock()
			return a.result(), true, nil
		}
		if a := s.running[r.ID]; a != nil && !a.over() {
			s.mu.Unlock()
			if a.fingerprint != r.Fingerprint {
				return reprise.ClaimResult{Outcome: reprise.Mismatch}, true, nil
			}
			return reprise.ClaimResult{Outcome: reprise.InProgress}, true, nil
		}
		other := s.claiming[r.ID]
		if other == nil {
			s.claiming[r.ID] = make(chan struct{})
			s.mu.Unlock()
			return reprise.ClaimResult{}, false, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
			look = true // what ended that claim at once ends this one, too
		case <-ctx.Done():
			return reprise.ClaimResult{}, false, fmt.Errorf("%w: postgres: claim: an earlier claim of the same key has no answer yet: %w",
				reprise.ErrUnavailable, ctx.Err())
		}
	}
}

// claimBySight answers a claim by one bare SELECT, where the record alone decides.
func (s *TransactionalStore) claimBySight(ctx context.Context, r reprise.ClaimRequest) (result reprise.ClaimResult, done bool, err error) {
	var found seen
	err = s.on(ctx, "claim", func(conn *pgx.Conn) error {
		found = seen{}
		sending := s.sendingOn(conn)
		if sending != sendText {
			err := s.records.send(ctx, conn, sending == sendPrepared, call{s.sql.claimLook, [][]byte{r.ID[:]}, found.read})
			if !notPrepared(err) {
				return err
			}
			s.giveUpPreparing(ctx, err)
		}
		return query(ctx, conn, s.sql.seen.sql, []any{s.config.ExecMode, r.ID[:]}, func(rows pgx.Rows) error {
			rows.Next()
			return found.scan(rows)
		})
	})
	if err != nil {
		return reprise.ClaimResult{}, false, err
	}
	return s.settle(&found, &r)
}

// settle answers a claim where the row that was seen allows no attempt.
func (s *TransactionalStore) settle(found *seen, r *reprise.ClaimRequest) (result reprise.ClaimResult, done bool, err error) {
	if found.standby {
		return reprise.ClaimResult{}, false, errStandby
	}
	d := found.decide(r)
	if d.claimable() {
		return reprise.ClaimResult{}, false, nil
	}
	result, err = d.atomicResult()
	if err == nil {
		s.count(result)
	}
	return result, true, err
}

// count notes whether a look at the record would have answered a claim.
func (s *TransactionalStore) count(result reprise.ClaimResult) {
	s.recent.count(result.Outcome == reprise.Completed || result.Outcome == reprise.Mismatch)
}

func (s *TransactionalStore) leaveClaim(id reprise.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.claiming[id])
	delete(s.claiming, id)
}

// claimWithoutSlot answers a claim for which no transaction is free, where that needs
// none: a replay, a mismatch, or a duplicate of an attempt that runs in another
// process.
func (s *TransactionalStore) claimWithoutSlot(ctx context.Context, r reprise.ClaimRequest) (result reprise.ClaimResult, done bool, err error) {
	var (
		found seen
		held  bool
		key   = uint64(s.lockKey(r.ID)) //nolint:gosec // its bits
	)
	err = s.on(ctx, "claim", func(conn *pgx.Conn) error {
		held = false
		look := call{s.sql.waiting, [][]byte{r.ID[:], appendInt8(nil, int64(key>>32)), appendInt8(nil, int64(key&0xffffffff))}, func(row *row) {
			found.readAttempt(row)
			held = row.boolean()
		}}
		prepared := s.sendingOn(conn) == sendPrepared
		err := s.records.send(ctx, conn, prepared, look)
		if prepared && notPrepared(err) {
			s.giveUpPreparing(ctx, err)
			err = s.records.send(ctx, conn, false, look)
		}
		return err
	})
	if err != nil {
		return reprise.ClaimResult{}, false, err
	}
	result, done, err = s.settle(&found, &r)
	switch {
	case done || err != nil:
		return result, done, err
	case held && s.isUndecided(r.Owner):
		return reprise.ClaimResult{}, false, nil // the lock may be this owner's
	case held:
		return reprise.ClaimResult{Outcome: reprise.InProgress}, true, nil
	}
	return reprise.ClaimResult{}, false, nil
}

// A claim waits in line within the deadline of its caller, and this long where there is
// none. A tenth of that, and at least claimReserve, is kept for the claim itself. After
// lookAfter it looks whether it needs a transaction at all: most waits are shorter, and
// the look costs as much as a claim.
const (
	claimWait    = 2 * time.Second
	claimReserve = 50 * time.Millisecond
	lookAfter    = 10 * time.Millisecond
)

// waitForSlot waits in line for a transaction, or answers a claim that needs none.
func (s *TransactionalStore) waitForSlot(ctx context.Context, r reprise.ClaimRequest) (result reprise.ClaimResult, done bool, err error) {
	start, budget := time.Now(), claimWait
	if deadline, ok := ctx.Deadline(); ok {
		budget = time.Until(deadline)
	}
	place := s.slots.enqueue()
	if place.within(min(lookAfter, budget/10)) {
		return reprise.ClaimResult{}, false, nil
	}
	kept := false
	defer func() { // also when a tracer of the application panics
		if !kept {
			s.slots.leave(place)
		}
	}()
	result, done, err = s.claimWithoutSlot(ctx, r)
	if done || err != nil {
		return result, done, err
	}
	wait, cancel := context.WithDeadline(ctx, start.Add(budget-max(claimReserve, budget/10)))
	defer cancel()
	kept = true
	if s.slots.take(wait, place) != nil {
		return reprise.ClaimResult{}, false, fmt.Errorf("%w: postgres: claim: no transaction available within %v (all %d in use); give the pool more connections or make handlers faster",
			reprise.ErrUnavailable, time.Since(start).Round(time.Millisecond), s.slots.limit)
	}
	return reprise.ClaimResult{}, false, nil
}

// Renew implements [reprise.Store]. An attempt of this store needs no renewal and is
// answered Renewed while it runs here; leased records in the same table are renewed.
func (s *TransactionalStore) Renew(ctx context.Context, rs []reprise.RenewRequest) ([]reprise.RenewStatus, error) {
	statuses, err := s.renew(ctx, rs)
	for i := range statuses {
		if s.find(rs[i].ID, rs[i].Owner) != nil {
			statuses[i] = reprise.Renewed
		}
	}
	return statuses, err
}

// Complete implements [reprise.Store]: it stores the response in the transaction of the
// attempt and commits. Where the answer to the COMMIT is lost, it takes the attempt's
// lock on another connection, so that nothing can be committing any more, and looks.
// ErrNotApplied is certain; ErrUnknown says that the lock or the server was unavailable
// before ctx ended. A handler that ended the transaction makes it ErrMisconfigured,
// because nobody can tell what it committed. One that began another transaction itself,
// in which a statement then failed, is not found out: the answer is about that one.
func (s *TransactionalStore) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	a := s.take(r.ID, r.Owner)
	if a == nil {
		if s.isUndecided(r.Owner) {
			return s.findCommit(ctx, r.ID, r.Owner)
		}
		return s.complete(ctx, &r)
	}
	s.setUndecided(r.Owner)
	err := s.commitAndEnd(ctx, a, r)
	if errors.Is(err, reprise.ErrUnknown) && ctx.Err() == nil {
		return s.findCommit(ctx, r.ID, r.Owner)
	}
	if !errors.Is(err, reprise.ErrUnknown) && !errors.Is(err, reprise.ErrNotReplicated) {
		s.setDecided(r.Owner)
	}
	return err
}

// commitAndEnd commits and gives the connection and the slot back, also when a tracer
// of the application panics.
func (s *TransactionalStore) commitAndEnd(ctx context.Context, a *attempt, r reprise.CompleteRequest) error {
	defer s.end(a)
	err := s.commit(ctx, a, r)
	if err != nil {
		_ = a.rollback(ctx) // the lock is free before the answer is out
	}
	return err
}

// Release implements [reprise.Store]: it rolls the transaction of the attempt back.
func (s *TransactionalStore) Release(ctx context.Context, id reprise.ID, owner reprise.Owner) error {
	a := s.take(id, owner)
	if a == nil {
		s.setDecided(owner) // a claim without an answer: its session ends with its connection
		return nil
	}
	defer s.end(a)
	return a.rollback(ctx)
}

// Bind implements [reprise.ContextBinder]: it makes the transaction of the attempt
// available to [Tx] and [SQLTx].
func (s *TransactionalStore) Bind(ctx context.Context, id reprise.ID, owner reprise.Owner) context.Context {
	if a := s.find(id, owner); a != nil {
		return context.WithValue(ctx, txKey{}, a)
	}
	return ctx
}

// lockKey names the lock of an attempt. Advisory locks belong to the whole database, so
// the table is part of it.
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

// take returns the attempt of owner, which the caller then has to end, or nil.
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
	s.mu.Lock()
	if s.running[a.id] == a {
		delete(s.running, a.id)
	}
	s.mu.Unlock()
	s.slots.release()
}

// setUndecided remembers that owner's last call may or may not have been executed, and
// forgets the oldest owners that nobody asked about again.
func (s *TransactionalStore) setUndecided(owner reprise.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for o, since := range s.undecided {
		if now.Sub(since) > 2*s.config.TxTimeout {
			delete(s.undecided, o)
		}
	}
	s.undecided[owner] = now
}

func (s *TransactionalStore) isUndecided(owner reprise.Owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.undecided[owner]
	return found
}

func (s *TransactionalStore) setDecided(owner reprise.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.undecided, owner)
}
