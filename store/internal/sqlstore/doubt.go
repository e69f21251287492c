package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/record"
)

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
