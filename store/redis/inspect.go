package repriseredis

import (
	"context"
	"errors"

	"github.com/reprise-go/reprise/core/store"
)

// errChangedBefore is the cause of [store.ErrUnknown] where an earlier try of a call
// may have made the change that its repetition finds.
var errChangedBefore = errors.New("the record has changed, maybe by this call, whose first reply was lost")

// Inspect implements [store.Inspector] in one command, at the primary.
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	c := &command{script: inspectScript}
	c.fixed = append(c.buf[:0], "payload"...)
	s.call(ctx, c, id, &c.fixed)
	answer, err := s.runOne(ctx, c)
	if err != nil {
		return store.Record{}, err
	}
	if answer[0] == tagNone {
		return store.Record{}, store.ErrNotFound
	}
	r, _, ok := parseView(id, answer)
	if !ok {
		return store.Record{}, fail(store.ErrUnknown, errUnexpected)
	}
	return r, nil
}

// Resolve implements [store.Inspector] in one command. The record that it completes has
// no owner: the last attempt, should it still come back, learns that it lost. Where a
// reply was lost and the repetition finds the record changed, this call may have changed
// it, and the error is ErrUnknown: inspect the record again.
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	c := &command{script: resolveScript, wait: true, payload: r.Payload, span: completedSpan(r.Retention)}
	c.fixed = appendResolution(c.buf[:0], &r)
	s.call(ctx, c, id, &c.fixed, &c.span, &c.payload)
	answer, err := s.runOne(ctx, c)
	switch {
	case err != nil:
		return err
	case answer[0] == tagNone && c.uncertain:
		return fail(store.ErrUnknown, errChangedBefore)
	case answer[0] == tagNone:
		return store.ErrRecordChanged
	case answer[0] != tagChanged:
		return fail(store.ErrUnknown, errUnexpected)
	}
	return nil
}
