package sqlstore

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
)

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
