package lazytx

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// Transaction is that of one attempt. It implements [store.Transaction].
type Transaction struct {
	all     *Transactions
	id      store.ID
	owner   store.Owner
	attempt reprise.AttemptView // to which it belongs

	mu       sync.Mutex
	closed   bool          // the handler has returned
	starting chan struct{} // closed when the call that begins it has ended; nil: none does
	giveUp   context.CancelFunc
	session  Session // nil before it has begun
	watchdog *time.Timer
	ending   bool // by Commit or Rollback
	expired  bool
	over     bool  // the session has ended
	err      error // of its rollback
}

var _ store.Transaction = (*Transaction)(nil)

// begin returns the session, and begins the transaction at its first call.
func (t *Transaction) begin(ctx context.Context) (Session, error) {
	for {
		t.mu.Lock()
		switch session := t.session; {
		case t.closed:
			t.mu.Unlock()
			return nil, fmt.Errorf("%w: %s: the attempt has ended, and its transaction with it", store.ErrInvalid, t.all.Name)
		case session != nil:
			t.mu.Unlock()
			return session, nil
		case t.starting == nil:
			if err := t.first(ctx); err != nil {
				return nil, err
			}
			continue
		}
		other := t.starting
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s: begin: %w", store.ErrUnavailable, t.all.Name, ctx.Err())
		}
	}
}

// first begins the transaction. t.mu is held at its call only, and not while the server
// or a slot is waited for.
func (t *Transaction) first(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.all.Timeout)
	defer cancel()
	t.starting, t.giveUp = make(chan struct{}), cancel
	t.mu.Unlock()
	var session Session
	defer func() { // also when a tracer of the application panics
		t.mu.Lock()
		defer t.mu.Unlock()
		close(t.starting)
		t.starting, t.giveUp = nil, nil
		switch {
		case session == nil:
		case t.closed: // meanwhile
			session.End(t.all.Slots.Release)
		default:
			t.session = session
			t.watchdog = time.AfterFunc(t.all.Timeout, t.expire)
		}
	}()
	var err error
	session, err = t.open(ctx)
	return err
}

// open takes a slot, and begins the transaction.
func (t *Transaction) open(ctx context.Context) (session Session, err error) {
	s, start := t.all, time.Now()
	if s.Slots.Take(ctx) != nil {
		return nil, fmt.Errorf("%w: %s: begin: no connection for a transaction within %v (all %d in use); give the pool more connections or make handlers faster",
			store.ErrBusy, s.Name, time.Since(start).Round(time.Millisecond), s.Slots.Limit)
	}
	defer func() {
		if session == nil {
			s.Slots.Release()
		}
	}()
	return s.Open(ctx, t.id, t.owner)
}

// expire ends a transaction that lasts too long. The handler's next statement fails.
func (t *Transaction) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		return
	}
	t.expired = true
	if t.over, t.err = t.session.Expire(); t.over {
		t.session.End(t.all.Slots.Release)
	}
}

// Close implements [store.Transaction].
func (t *Transaction) Close() (begun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.giveUp != nil {
		t.giveUp()
	}
	if t.session != nil {
		t.session.Refuse()
	}
	return t.session != nil
}

// Commit implements [store.Transaction].
func (t *Transaction) Commit(ctx context.Context, r store.CompleteRequest) error {
	expired, why := t.end(), "the transaction outlasted Config.TxTimeout"
	invalid := r.Validate()
	if invalid != nil {
		why = invalid.Error()
	}
	if expired || invalid != nil {
		if err := t.Rollback(ctx); errors.Is(err, store.ErrMisconfigured) {
			return err
		}
		return NotApplied(t.all.Name, why)
	}
	err := func() error {
		defer t.session.End(t.all.Slots.Release)
		return t.session.Commit(ctx, &r)
	}()
	if errors.Is(err, store.ErrUnknown) && ctx.Err() == nil {
		return t.all.Find(ctx, t.id, t.owner)
	}
	return err
}

// Rollback implements [store.Transaction].
func (t *Transaction) Rollback(ctx context.Context) error {
	if t.end(); t.over {
		return t.err
	}
	defer t.session.End(t.all.Slots.Release)
	return t.session.Rollback(ctx)
}

// end makes the context of the caller the bound from here on, and reports whether the
// transaction has expired.
func (t *Transaction) end() (expired bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending = true
	t.watchdog.Stop()
	return t.expired
}

// NotApplied is the error of a Commit that was rolled back.
func NotApplied(name, why string) error {
	return fmt.Errorf("%w: %s: complete: %s", store.ErrNotApplied, name, why)
}

// Undecided is the error of Transactions.Find if it cannot find out.
func Undecided(name, why string) error {
	return fmt.Errorf("%w: %s: complete: the answer to COMMIT was lost, and its result could not be found out: %s", store.ErrUnknown, name, why)
}

// Transactions.Find waits for the record until findMargin before the caller's deadline,
// which leaves time for the answer, or for findWait if there is no deadline.
const (
	findWait   = 2 * time.Second
	findMargin = 100 * time.Millisecond
)

// FindWait is how long Transactions.Find waits for the record.
func FindWait(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(time.Until(deadline)-findMargin, findMargin/2)
	}
	return findWait
}

// EndedByHandler is the error for a misuse that is detected too late to undo it.
func EndedByHandler(name string) error {
	return fmt.Errorf("%w: %s: the handler ended the transaction of its attempt; leave COMMIT and ROLLBACK to the store",
		store.ErrMisconfigured, name)
}
