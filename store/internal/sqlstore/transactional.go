package sqlstore

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// Transactional is the store that runs each attempt in one transaction. The claim writes
// the record there, invisible to other transactions, and sets a savepoint. Then the
// handler writes, and the completion commits both together or neither.
type Transactional struct {
	*Table

	begin   Beginner
	slots   *slots.Slots
	timeout time.Duration

	mu       sync.Mutex
	attempts map[store.Owner]*attempt
	running  map[store.ID]*attempt
	doubts   map[store.Owner]time.Time // owners whose commit may or may not have been executed, and since when
}

// A Beginner begins the transactions of attempts.
type Beginner interface {
	// Begin begins a transaction in which the record of id can be written, even if there is
	// none yet, and excludes every other attempt on it. The error is ErrBusy if ctx ended
	// first, or [ErrHeld].
	Begin(ctx context.Context, op string, id store.ID) (*Tx, error)
}

// ErrHeld says that another transaction holds the record.
var ErrHeld = errors.New("another transaction holds the record")

// NewTransactional returns the transactional store over t. If attempts exclude other
// writers, the writer of t has to take a slot as attempts do: see [Slotted].
func NewTransactional(t *Table, begin Beginner, s *slots.Slots, timeout time.Duration) *Transactional {
	return &Transactional{
		Table: t, begin: begin, slots: s, timeout: timeout,
		attempts: make(map[store.Owner]*attempt), running: make(map[store.ID]*attempt), doubts: make(map[store.Owner]time.Time),
	}
}

// Claim grants an attempt with its transaction, or says why not. The caller has validated
// the request. Claims that find no free slot wait, first come, first served, until
// shortly before ctx ends.
func (s *Transactional) Claim(ctx context.Context, r *store.ClaimRequest) (store.ClaimResult, error) {
	if result, done := s.claimHere(r); done {
		return result, nil
	}
	found, err := s.lookAlone(ctx, "claim", r.ID)
	if err != nil {
		return store.ClaimResult{}, err
	}
	if d := found.Decide(r); !d.Claimable() {
		return d.AtomicResult(s.Dialect.Name)
	}
	wait, cancel := withoutReserve(ctx)
	defer cancel()
	result, done, err := s.waitForSlot(wait, r)
	if done || err != nil {
		return result, err
	}
	a, result, err := s.attempt(wait, r)
	if a == nil {
		s.slots.Release()
		return result, err
	}
	a.watch(s.slots.Release)
	s.mu.Lock()
	s.attempts[a.owner], s.running[a.id] = a, a
	s.mu.Unlock()
	return a.result(), nil
}

// A claim waits until the deadline of its caller, or for claimWait if there is none, less
// a tenth of that time, and at least claimReserve, which the claim itself needs. While it
// waits, it checks every lookEvery whether an attempt on its record has begun in this
// process.
const (
	claimWait    = 2 * time.Second
	claimReserve = 50 * time.Millisecond
	lookEvery    = 10 * time.Millisecond
)

// withoutReserve returns ctx with the deadline until which a claim waits.
func withoutReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	budget := claimWait
	if deadline, ok := ctx.Deadline(); ok {
		budget = time.Until(deadline)
	}
	return context.WithTimeout(ctx, budget-max(claimReserve, budget/10))
}

// claimHere answers a claim from the memory of this process.
func (s *Transactional) claimHere(r *store.ClaimRequest) (result store.ClaimResult, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.attempts[r.Owner]; a != nil && a.id == r.ID {
		return a.result(), true
	}
	a := s.running[r.ID]
	switch {
	case a == nil || a.over():
		return store.ClaimResult{}, false
	case a.fingerprint != r.Fingerprint:
		return store.ClaimResult{Outcome: store.Mismatch}, true
	}
	return store.ClaimResult{Outcome: store.InProgress}, true
}

// waitForSlot takes a slot, or answers a claim that needs none.
func (s *Transactional) waitForSlot(ctx context.Context, r *store.ClaimRequest) (result store.ClaimResult, done bool, err error) {
	place, since := s.slots.Enqueue(), time.Now()
	for !place.Within(lookEvery) {
		if result, done = s.claimHere(r); done {
			s.slots.Leave(place)
			return result, true, nil
		}
		if ctx.Err() != nil {
			s.slots.Leave(place)
			return result, false, fmt.Errorf("%w: %s: claim: no transaction available within %v (all %d in use); make handlers faster",
				store.ErrBusy, s.Dialect.Name, time.Since(since).Round(time.Millisecond), s.slots.Limit)
		}
	}
	if result, done = s.claimHere(r); done {
		s.slots.Release()
	}
	return result, done, nil
}

// attempt begins an attempt, or says why not.
func (s *Transactional) attempt(ctx context.Context, r *store.ClaimRequest) (*attempt, store.ClaimResult, error) {
	tx, err := s.begin.Begin(ctx, "claim", r.ID)
	switch {
	case errors.Is(err, ErrHeld):
		return nil, store.ClaimResult{Outcome: store.InProgress}, nil
	case err != nil:
		return nil, store.ClaimResult{}, err
	}
	a := &attempt{
		dialect: s.Dialect, id: r.ID, owner: r.Owner, fingerprint: r.Fingerprint, request: *r, tx: tx, deadline: time.Now().Add(s.timeout),
	}
	a.request.Lease = s.timeout
	result, err := s.open(s.Dialect.rest(ctx), a)
	if err == nil && result.Outcome == store.Claimed {
		return a, result, nil
	}
	tx.Broken = s.Dialect.retires(err)
	tx.End()
	if err = s.Dialect.Fail("claim", err); errors.Is(err, ErrLostRace) {
		return nil, store.ClaimResult{Outcome: store.InProgress}, nil // another writer has the record at this moment
	}
	return nil, result, err
}

// open writes the record of an attempt into its transaction, unless an earlier
// transaction of the attempt has committed it, and sets the savepoint to which its
// effects can be undone.
func (s *Transactional) open(ctx context.Context, a *attempt) (store.ClaimResult, error) {
	found, err := s.hold(ctx, a.tx, a.id)
	if err != nil {
		return store.ClaimResult{}, err
	}
	result := store.ClaimResult{Outcome: store.Claimed}
	if a.number == 0 || !found.Found || !bytes.Equal(found.Owner, a.owner[:]) { // else the handler committed it
		d := found.Decide(&a.request)
		if !d.Claimable() {
			return d.AtomicResult(s.Dialect.Name)
		}
		a.number, a.fence = d.Attempt, d.Fence
		result, err = s.put(ctx, a.tx, &a.request, found, &d)
	}
	if err == nil {
		_, err = a.tx.ExecContext(ctx, "SAVEPOINT "+savepoint)
	}
	return result, err
}

// Renew extends the leases of leased records in the same table. An attempt of this store
// has no lease, and is Renewed while it runs in this process.
func (s *Transactional) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	statuses := make([]store.RenewStatus, len(rs))
	var (
		others []store.RenewRequest
		at     []int
	)
	for i := range rs {
		if s.find(rs[i].ID, rs[i].Owner) != nil && rs[i].Validate() == nil {
			statuses[i] = store.Renewed
			continue
		}
		others, at = append(others, rs[i]), append(at, i)
	}
	renewed, err := s.Table.Renew(ctx, others)
	if err != nil || len(rs) == 0 {
		return nil, err
	}
	for i, status := range renewed {
		statuses[at[i]] = status
	}
	return statuses, nil
}

// Complete stores the response in the transaction of the attempt, and commits. The caller
// has validated the request.
func (s *Transactional) Complete(ctx context.Context, r *store.CompleteRequest) error {
	a := s.take(r.ID, r.Owner)
	if a == nil {
		if mine, err := s.owns(ctx, "complete", r.ID, r.Owner); err != nil || !mine {
			return err
		}
		return s.Table.Complete(ctx, r)
	}
	payload := append([]byte{}, r.Payload...) // nil is no payload
	defer s.end(a)
	err := s.finish(ctx, a, "complete", r.DiscardEffects, func(ctx context.Context, found *row) error {
		horizon, retention := r.Horizon.Microseconds(), r.Retention.Microseconds()
		return s.complete(ctx, a.tx, found, &ending{owner: r.Owner, payload: payload, replay: retention, retention: retention, horizon: horizon})
	})
	if errors.Is(err, errEnded) {
		switch committed, lookErr := s.committedByHandler(ctx, a); {
		case lookErr != nil:
			return s.Dialect.FailCommit("complete", lookErr)
		case committed:
			return fmt.Errorf("%w: %s: complete: the handler ended the transaction of its attempt; leave COMMIT and ROLLBACK to the store",
				store.ErrMisconfigured, s.Dialect.Name)
		}
	}
	return s.settle(ctx, a, "complete", err)
}

// Unknown undoes the effects of the attempt, and commits its record alone. The caller has
// validated the request.
func (s *Transactional) Unknown(ctx context.Context, r *store.UnknownRequest) error {
	a := s.take(r.ID, r.Owner)
	if a == nil {
		if mine, err := s.owns(ctx, "unknown", r.ID, r.Owner); err != nil || !mine {
			return err
		}
		return s.Table.Unknown(ctx, r)
	}
	defer s.end(a)
	mark := func(ctx context.Context, found *row) error { return s.unknown(ctx, a.tx, found, r) }
	err := s.finish(ctx, a, "unknown", true, mark)
	if errors.Is(err, errEnded) { // and the record with it: write it in another one
		a.tx.End()
		if a.tx, err = s.begin.Begin(ctx, "unknown", a.id); err != nil {
			a.tx = nil
			return fmt.Errorf("%w: %s: unknown: the handler ended the transaction of its attempt, and the record could not be written in another one: %s", store.ErrUnknown, s.Dialect.Name, err.Error())
		}
		var result store.ClaimResult
		result, err = s.open(s.Dialect.rest(ctx), a)
		switch {
		case err == nil && result.Outcome != store.Claimed:
			err = errEnded // another attempt has the record, which decides
		case err == nil:
			err = s.finish(ctx, a, "unknown", true, mark)
		}
	}
	return s.settle(ctx, a, "unknown", err)
}

// owns reports whether the record of id is the owner's; if not, the error is
// ErrLeaseLost. It needs no slot, because an owner whose attempt does not run in this
// process can no longer get a record, unless its commit is in doubt and may still be on
// its way.
func (s *Transactional) owns(ctx context.Context, op string, id store.ID, owner store.Owner) (bool, error) {
	var found *row
	err := s.read(ctx, op, func(ctx context.Context, on Conn) (err error) {
		found, err = s.lookFor(ctx, on, op, id)
		return err
	})
	if err == nil && !found.of(owner) && s.inDoubt(owner) {
		if found, err = s.lookLocked(ctx, op, id); err != nil {
			return false, fmt.Errorf("%w: %s: %s: the commit may or may not have been executed: %s", store.ErrUnknown, s.Dialect.Name, op, err.Error())
		}
	}
	switch {
	case err != nil:
		return false, err
	case !found.of(owner):
		return false, s.lost(op)
	}
	return true, nil
}

// of reports whether a record that was found is the owner's, even after its Unknown.
func (r *row) of(owner store.Owner) bool {
	return r != nil && r.Found && (bytes.Equal(r.Owner, owner[:]) || bytes.Equal(r.Owner, record.EndedOwner(owner)))
}

// inDoubt reports whether the commit of owner's attempt may or may not have been
// executed.
func (s *Transactional) inDoubt(owner store.Owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.doubts[owner]
	return found
}

// doubt remembers that the commit of owner's attempt may or may not have been executed,
// and forgets owners that are older than any attempt can be.
func (s *Transactional) doubt(owner store.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.doubts, func(_ store.Owner, since time.Time) bool { return time.Since(since) > 2*s.timeout })
	s.doubts[owner] = time.Now()
}

// lookLocked reads the record of id in a transaction that excludes every attempt on it.
// If it can begin one, each earlier attempt has been committed or rolled back.
func (s *Transactional) lookLocked(ctx context.Context, op string, id store.ID) (*row, error) {
	tx, err := s.begin.Begin(ctx, op, id)
	if err != nil {
		return nil, err
	}
	defer tx.End()
	found, err := s.hold(ctx, tx, id)
	tx.Broken = s.Dialect.retires(err)
	return found, err
}

// Release undoes the effects of the attempt, and its record.
func (s *Transactional) Release(_ context.Context, id store.ID, owner store.Owner) error {
	if a := s.take(id, owner); a != nil {
		s.end(a)
	}
	return nil
}

// errEnded says that the transaction of an attempt had ended before its completion.
var errEnded = errors.New("the transaction had ended before the response was stored")

// finish ends the attempt: mark writes its record, and finish commits.
func (s *Transactional) finish(ctx context.Context, a *attempt, op string, discard bool, mark func(context.Context, *row) error) error {
	a.unwatch()
	statement := "RELEASE SAVEPOINT "
	if discard {
		statement = "ROLLBACK TO SAVEPOINT "
	}
	rest := s.Dialect.rest(ctx)
	switch _, err := a.tx.ExecContext(rest, statement+savepoint); {
	case err == nil:
	case isContext(err), errors.Is(err, driver.ErrBadConn), s.Dialect.retires(err): // the connection is closed
		return fmt.Errorf("%w: %w", errNotCommitted, err)
	default:
		return fmt.Errorf("%w: %w", errEnded, err)
	}
	found, err := s.hold(rest, a.tx, a.id)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errNotCommitted, err)
	case !found.Found || !found.Readable() || found.State != record.Running || !bytes.Equal(found.Owner, a.owner[:]):
		return errEnded // the handler began another one
	}
	if err := mark(rest, found); err != nil {
		return fmt.Errorf("%w: %w", errNotCommitted, err)
	}
	if err := a.tx.commit(rest); err != nil {
		return s.Dialect.FailCommit(op, err)
	}
	return nil
}

// errNotCommitted says that a statement of the store failed before the commit.
var errNotCommitted = errors.New("the response could not be stored")

// settle turns the error of finish into one of the Store contract. If the commit may or
// may not have been executed, it reads the record in another transaction that excludes
// attempts: once it can begin one, that of the attempt has ended.
func (s *Transactional) settle(ctx context.Context, a *attempt, op string, err error) error {
	notApplied := func(why error) error {
		return fmt.Errorf("%w: %s: %s: %s", store.ErrNotApplied, s.Dialect.Name, op, why.Error())
	}
	switch {
	case err == nil:
		return nil
	case a.expired.Load() && !errors.Is(err, store.ErrUnknown): // else the commit was faster, perhaps
		return notApplied(errors.New("the attempt outlasted Config.TxTimeout"))
	case errors.Is(err, errEnded), errors.Is(err, errNotCommitted), errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrFull),
		errors.Is(err, store.ErrUnavailable): // the server refused the COMMIT
		return notApplied(err)
	case !errors.Is(err, store.ErrUnknown):
		return s.Dialect.Fail(op, err)
	}
	a.tx.End()
	found, lookErr := s.lookLocked(ctx, op, a.id)
	for try := 1; errors.Is(lookErr, ErrHeld) && pause(ctx, try); try++ { // it may still be committing
		found, lookErr = s.lookLocked(ctx, op, a.id)
	}
	switch {
	case lookErr != nil:
		s.doubt(a.owner)
		return err
	case found.of(a.owner):
		return nil
	}
	return notApplied(err)
}

// committedByHandler reports whether the record of an attempt was committed although this
// store did not commit its transaction.
func (s *Transactional) committedByHandler(ctx context.Context, a *attempt) (bool, error) {
	found, err := s.lookAlone(ctx, "complete", a.id)
	return err == nil && found.Found && bytes.Equal(found.Owner, a.owner[:]), err
}
