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

	"github.com/reprise-go/reprise/core/store"
)

// Inspect implements [store.Inspector].
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	if err := s.enter(ctx); err != nil {
		return store.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	rec, err := s.find(id, now)
	if rec == nil && s.has(inspectUnseen) {
		rec = s.records[id]
	}
	switch {
	case errors.Is(err, store.ErrCorrupt) && !s.has(inspectUnreadableFails):
		return s.view(id, s.records[s.place(id)], now), nil
	case err != nil:
		return store.Record{}, err
	case rec == nil:
		return store.Record{}, store.ErrNotFound
	}
	view := s.view(id, rec, now)
	if !s.has(inspectHidesPayload) && view.State != store.StateExpired {
		view.Payload = bytes.Clone(rec.payload)
	}
	return view, nil
}

// view shows a record without its payload.
func (s *Store) view(id store.ID, rec *record, now time.Time) store.Record {
	if rec.damaged {
		return store.Record{ID: id, State: store.StateUnreadable, Fence: rec.fence}
	}
	end := rec.valid
	if s.live(rec, now) && rec.lease.After(end) && !s.has(inspectEndsWithClaim) {
		end = rec.lease
	}
	v := store.Record{
		ID: id, State: store.StateLapsed, Policy: rec.policy, Description: rec.description, Attempt: rec.attempt, Fence: rec.fence,
		ClaimedAt: rec.claimedAt, Validity: end.Sub(now), Size: len(rec.payload),
	}
	switch {
	case rec.completed && !now.Before(rec.replayed) && !s.has(inspectShowsExpired):
		v.State, v.CompletedAt, v.Size = store.StateExpired, rec.completedAt, 0
	case rec.completed:
		v.State, v.CompletedAt = store.StateCompleted, rec.completedAt
		v.Resolved = rec.owner.IsZero() && !s.has(resolvedHidden)
	case s.has(inspectHidesLapse):
		v.State, v.Lease = store.StateRunning, v.Validity
	default:
		v.Lease = rec.lease.Sub(now)
		switch {
		case v.Lease > 0:
			v.State = store.StateRunning
		case rec.reason != "" && !s.has(unknownHidden):
			v.State, v.Reason = store.StateUnknown, rec.reason
		}
	}
	if !s.has(fingerprintHidden) {
		v.Fingerprint = rec.fingerprint
	}
	if s.has(descriptionExpires) && v.State == store.StateExpired {
		v.Description = ""
	}
	if s.has(policyHiddenAtEnd) && rec.completed {
		v.Policy = store.Policy{}
	}
	return v
}

// cursorStart is how the cursors of this store start.
const cursorStart = "broken:"

// List implements [store.Inspector].
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	after, err := s.parseCursor(q.After)
	if err != nil {
		return store.Page{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var page store.Page
	ids := slices.SortedFunc(maps.Keys(s.records), func(a, b store.ID) int { return bytes.Compare(a[:], b[:]) })
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
func (s *Store) lists(q *store.Query, rec *record, view *store.Record, now time.Time) bool {
	if rec.damaged {
		return q.Selects(view, now) && !s.has(listHidesUnreadable)
	}
	selects := *q
	switch {
	case s.has(listAllStates):
		selects.States = 0
	case s.has(listLabelPrefix) && strings.HasPrefix(view.Label, q.Label):
		selects.Label = ""
	case s.has(listShowsProbes) && q.Label == "":
		selects.Label = view.Label
	case s.has(listAllAges):
		selects.OlderThan = 0
	}
	if s.has(sizeInspectedOnly) {
		view.Size = 0
	}
	if s.has(descriptionNotListed) {
		view.Description = ""
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
		return nil, fmt.Errorf("%w: Query.After is not a cursor of this store", store.ErrInvalid)
	}
	return after, nil
}

// Usage implements [store.Meter].
func (s *Store) Usage() []store.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []store.Usage{{Name: "records", Used: int64(len(s.records)), Limit: 1000}}
	if s.has(usageNamedTwice) {
		list = append(list, list[0])
	}
	return list
}

// Resolve implements [store.Inspector].
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
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
	if errors.Is(err, store.ErrCorrupt) {
		rec = s.records[s.place(id)]
	}
	switch {
	case rec == nil || !s.stillAs(rec, &r, now):
		return store.ErrRecordChanged
	case r.Forget && !s.has(resolveNeverForgets):
		s.remove(id)
		s.changed(id)
		return nil
	}
	if !s.has(resolveKeepsOwner) {
		rec.owner = store.Owner{}
	}
	replayed := s.after(now, r.Retention)
	valid := replayed
	if !s.has(resolveEndsHorizon) {
		valid = s.after(now, r.Retention+rec.policy.Horizon)
	}
	if valid.Before(rec.valid) && !s.has(resolveShortens) {
		valid = rec.valid
	}
	if s.has(resolveKeepsRetention, resolveNeverForgets) {
		valid = rec.valid
	}
	if s.has(resolveForgetsPolicy) {
		rec.policy = store.Policy{}
	}
	if s.has(descriptionNotResolved) {
		rec.description = ""
	}
	s.complete(id, rec, r.Payload, now, replayed, valid)
	return nil
}

// stillAs reports whether a record may be resolved by an operator, who inspected it as r
// says.
func (s *Store) stillAs(rec *record, r *store.Resolution, now time.Time) bool {
	same := rec.fence == r.Fence
	switch {
	case rec.damaged:
		return r.State == store.StateUnreadable && (same || s.has(unreadableAnyFence)) && !s.has(unreadableStays)
	case r.State == store.StateUnreadable:
		return same && s.has(unreadableForgetsAll)
	case rec.completed:
		seen := r.State.WasCompleted() || r.Forget && s.has(forgetUnseen)
		expired := !now.Before(rec.replayed)
		return seen && (same || s.has(forgetAnyFence)) && !s.has(completedStays) && !(expired && s.has(expiredStays))
	case r.State.WasCompleted():
		return same && s.has(forgetAnyAttempt)
	case s.live(rec, now):
		return same && s.has(resolveLive)
	case rec.reason != "" && r.State == store.StateLapsed:
		return same && s.has(resolveLateReason)
	default:
		return (same || s.has(resolveAnyFence)) && !(rec.reason != "" && s.has(unknownNotResolved))
	}
}
