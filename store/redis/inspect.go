package repriseredis

import (
	"context"
	"errors"

	reprise "github.com/reprise-go/reprise/core"
)

// errChangedBefore is the cause of [reprise.ErrUnknown] where an earlier try of a call
// may have made the change that its repetition finds.
var errChangedBefore = errors.New("the record has changed, maybe by this call, whose first reply was lost")

// Inspect implements [reprise.Inspector] in one command, at the primary.
func (s *Store) Inspect(ctx context.Context, id reprise.ID) (reprise.Record, error) {
	c := &command{script: inspectScript}
	c.fixed = append(c.buf[:0], "payload"...)
	s.call(ctx, c, id, &c.fixed)
	answer, err := s.runOne(ctx, c)
	if err != nil {
		return reprise.Record{}, err
	}
	if answer[0] == tagNone {
		return reprise.Record{}, reprise.ErrNotFound
	}
	r, _, ok := parseView(id, answer)
	if !ok {
		return reprise.Record{}, fail(reprise.ErrUnknown, errUnexpected)
	}
	return r, nil
}

// Resolve implements [reprise.Inspector] in one command. The record that it completes has
// no owner: the last attempt, should it still come back, learns that it lost. Where a
// reply was lost and the repetition finds the record changed, this call may have changed
// it, and the error is ErrUnknown: inspect the record again.
func (s *Store) Resolve(ctx context.Context, id reprise.ID, r reprise.Resolution) error {
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
		return fail(reprise.ErrUnknown, errChangedBefore)
	case answer[0] == tagNone:
		return reprise.ErrRecordChanged
	case answer[0] != tagChanged:
		return fail(reprise.ErrUnknown, errUnexpected)
	}
	return nil
}
