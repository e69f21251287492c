package broken

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// Inspect implements [reprise.Inspector].
func (s *Store) Inspect(ctx context.Context, id reprise.ID) (reprise.Record, error) {
	if err := s.enter(ctx); err != nil {
		return reprise.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rec, err := s.find(id, now)
	if rec == nil && s.has(inspectUnseen) {
		rec = s.records[id]
	}
	switch {
	case errors.Is(err, reprise.ErrCorrupt) && !s.has(inspectUnreadableFails):
		return s.view(id, s.records[s.place(id)], now), nil
	case err != nil:
		return reprise.Record{}, err
	case rec == nil:
		return reprise.Record{}, reprise.ErrNotFound
	}
	view := s.view(id, rec, now)
	if !s.has(inspectHidesPayload) {
		view.Payload = rec.payload
	}
	return view, nil
}

// view shows a record without its payload.
func (s *Store) view(id reprise.ID, rec *record, now time.Time) reprise.Record {
	if rec.damaged {
		return reprise.Record{ID: id, State: reprise.StateUnreadable}
	}
	end := rec.valid
	if s.live(rec, now) && rec.lease.After(end) && !s.has(inspectEndsWithClaim) {
		end = rec.lease
	}
	v := reprise.Record{
		ID: id, State: reprise.StateLapsed, Label: rec.label, Attempt: rec.attempt, Fence: rec.fence,
		ClaimedAt: rec.claimedAt, Validity: end.Sub(now), Size: len(rec.payload),
	}
	switch {
	case rec.completed:
		v.State, v.CompletedAt = reprise.StateCompleted, rec.completedAt
		v.Resolved = rec.owner.IsZero() && !s.has(resolvedHidden)
	case s.has(inspectHidesLapse):
		v.State, v.Lease = reprise.StateRunning, v.Validity
	default:
		v.Lease = rec.lease.Sub(now)
		if v.Lease > 0 {
			v.State = reprise.StateRunning
		}
	}
	if s.has(labelHiddenAtEnd) && rec.completed {
		v.Label = ""
	}
	return v
}

// cursorStart is how the cursors of this store start.
const cursorStart = "broken:"

// List implements [reprise.Inspector].
func (s *Store) List(ctx context.Context, q reprise.Query) (reprise.Page, error) {
	if err := q.Validate(); err != nil {
		return reprise.Page{}, err
	}
	if err := s.enter(ctx); err != nil {
		return reprise.Page{}, err
	}
	after, err := s.parseCursor(q.After)
	if err != nil {
		return reprise.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var page reprise.Page
	ids := slices.SortedFunc(maps.Keys(s.records), func(a, b reprise.ID) int { return bytes.Compare(a[:], b[:]) })
	for i, id := range ids {
		rec := s.records[id]
		if bytes.Compare(id[:], after) <= 0 {
			continue
		}
		full := len(page.Records) == q.Limit || s.has(listStopsAtNothing) && page.Scanned == q.Limit
		if full && !s.has(listBeyondLimit) {
			last := ids[i-1]
			if s.has(listSkips) {
				last = id
			}
			if !s.has(listOnePage) && len(page.Records) > 0 {
				page.Next = cursorStart + last.String()
			}
			break
		}
		page.Scanned++
		if view := s.view(id, rec, now); s.lists(&q, rec, &view, now) {
			page.Records = append(page.Records, view)
		}
	}
	return page, nil
}

// lists reports whether a record belongs in a listing.
func (s *Store) lists(q *reprise.Query, rec *record, view *reprise.Record, now time.Time) bool {
	if rec.damaged {
		return q.Selects(view, now) && !s.has(listHidesUnreadable)
	}
	selects := *q
	switch {
	case s.has(listAllStates):
		selects.States = 0
	case s.has(listLabelPrefix) && strings.HasPrefix(view.Label, q.Label):
		selects.Label = ""
	case s.has(listAllAges):
		selects.OlderThan = 0
	}
	if s.has(sizeInspectedOnly) {
		view.Size = 0
	}
	return (s.seen(rec, now) || s.has(listUnseen)) && selects.Selects(view, now)
}

func (s *Store) parseCursor(cursor string) ([]byte, error) {
	digits, ours := strings.CutPrefix(cursor, cursorStart)
	after, err := hex.DecodeString(digits)
	if s.has(cursorOfAnyone) {
		return after, nil
	}
	if cursor != "" && !ours || err != nil {
		return nil, fmt.Errorf("%w: Query.After is not a cursor of this store", reprise.ErrInvalid)
	}
	return after, nil
}

// Usage implements [reprise.Meter].
func (s *Store) Usage() []reprise.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []reprise.Usage{{Name: "records", Used: int64(len(s.records)), Limit: 1000}}
	if s.has(usageNamedTwice) {
		list = append(list, list[0])
	}
	return list
}

// Resolve implements [reprise.Inspector].
func (s *Store) Resolve(ctx context.Context, id reprise.ID, r reprise.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rec, err := s.find(id, now)
	forgets := r.Forget && r.Fence == 0
	switch {
	case errors.Is(err, reprise.ErrCorrupt) && forgets && !s.has(unreadableStays):
		s.remove(id)
		return nil
	case err != nil:
		return reprise.ErrRecordChanged
	case forgets && s.has(fenceZeroForgetsAll) && rec != nil:
		s.remove(id)
		return nil
	case rec == nil || rec.completed || s.live(rec, now):
		return reprise.ErrRecordChanged
	case rec.fence != r.Fence && !s.has(resolveAnyFence):
		return reprise.ErrRecordChanged
	case r.Forget && !s.has(resolveNeverForgets):
		s.remove(id)
		s.changed(id)
		return nil
	}
	if !s.has(resolveKeepsOwner) {
		rec.owner = reprise.Owner{}
	}
	valid := s.after(now, r.Retention)
	if s.has(resolveKeepsRetention, resolveNeverForgets) {
		valid = rec.valid
	}
	s.complete(id, rec, r.Payload, now, valid)
	return nil
}
