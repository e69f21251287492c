package repriseredis

import (
	"context"
	"errors"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// errChangedBefore is the cause of [store.ErrUnknown] where an earlier attempt at a call
// may have made the change that its repetition finds.
var errChangedBefore = errors.New("the record has changed, perhaps by this call, whose first reply was lost; inspect it again")

// Inspect implements [store.Inspector] in one command, at the primary.
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	c := &command{script: record.InspectScript}
	c.fixed = append(c.buf[:0], "payload"...)
	s.call(c, id, &c.fixed)
	answer, err := s.runOne(ctx, c)
	if err != nil {
		return store.Record{}, err
	}
	if answer[0] == record.TagNone {
		return store.Record{}, store.ErrNotFound
	}
	r, _, ok := record.ParseView(id, answer)
	if !ok {
		return store.Record{}, fail(store.ErrUnknown, errUnexpected)
	}
	return r, nil
}

// Resolve implements [store.Inspector] in one command. A record that it completes has no
// owner: if its last attempt comes back, it gets ErrLeaseLost. If a reply was lost and
// the repetition finds the record changed, the error is ErrUnknown, because this call may
// have changed it: inspect the record again.
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	c := &command{script: record.ResolveScript, payload: r.Payload}
	c.fixed = record.AppendResolution(c.buf[:0], &r)
	s.call(c, id, &c.fixed, &c.payload)
	answer, err := s.runOne(ctx, c)
	switch {
	case err != nil:
		return err
	case answer[0] == record.TagNone && c.uncertain:
		return fail(store.ErrUnknown, errChangedBefore)
	case answer[0] == record.TagNone:
		return store.ErrRecordChanged
	}
	return nil
}
