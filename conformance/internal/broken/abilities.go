package broken

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// Watch implements [reprise.Waiter].
func (s *Store) Watch(_ context.Context, id reprise.ID) (changed <-chan struct{}, stop func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan struct{}, 1)
	s.watches[id] = append(s.watches[id], ch)
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches[id] = slices.DeleteFunc(s.watches[id], func(other chan struct{}) bool {
			return other == ch || s.has(watchStopsAll)
		})
	}, nil
}

func (s *Store) changed(id reprise.ID) {
	for _, ch := range s.watches[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

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

func (s *Store) view(id reprise.ID, rec *record, now time.Time) reprise.Record {
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
		v.State, v.CompletedAt, v.Resolved = reprise.StateCompleted, rec.completedAt, rec.owner.IsZero()
	case s.has(inspectHidesLapse):
		v.State, v.Lease = reprise.StateRunning, v.Validity
	default:
		v.Lease = rec.lease.Sub(now)
		if v.Lease > 0 {
			v.State = reprise.StateRunning
		}
	}
	return v
}

// List implements [reprise.Inspector].
func (s *Store) List(ctx context.Context, q reprise.Query) (reprise.Page, error) {
	if err := q.Validate(); err != nil {
		return reprise.Page{}, err
	}
	if err := s.enter(ctx); err != nil {
		return reprise.Page{}, err
	}
	after, err := hex.DecodeString(q.After)
	if err != nil {
		return reprise.Page{}, fmt.Errorf("%w: Query.After is not a cursor of this store", reprise.ErrInvalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var page reprise.Page
	ids := slices.SortedFunc(maps.Keys(s.records), func(a, b reprise.ID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range ids {
		rec := s.records[id]
		if bytes.Compare(id[:], after) <= 0 {
			continue
		}
		if len(page.Records) == q.Limit && !s.has(listBeyondLimit) {
			last := page.Records[q.Limit-1].ID
			page.Next = last.String()
			break
		}
		page.Scanned++
		view := s.view(id, rec, now)
		if (s.seen(rec, now) || s.has(listUnseen)) && q.Selects(&view, now) {
			page.Records = append(page.Records, view)
		}
	}
	return page, nil
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
	switch {
	case err != nil:
		return err
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

// Purge implements [reprise.Purger].
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	if err := s.enterWithLimit(ctx, limit, 100_000); err != nil && !s.has(purgeAnyLimit) {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var dead []reprise.ID
	for id, rec := range s.records {
		isDead := !s.seen(rec, now)
		if s.has(purgeLiveLease) {
			isDead = !now.Before(rec.valid)
		}
		if isDead && len(dead) < limit && !s.has(purgeNothing) {
			dead = append(dead, id)
		}
	}
	s.linger(purgeNotAtomic)
	for _, id := range dead {
		delete(s.records, id)
	}
	return len(dead), nil
}

func (s *Store) enterWithLimit(ctx context.Context, limit, most int) error {
	if limit < 1 || limit > most {
		return fmt.Errorf("%w: limit is %d, want 1 to %d", reprise.ErrInvalid, limit, most)
	}
	return s.enter(ctx)
}

// Bind implements [reprise.ContextBinder].
func (s *Store) Bind(ctx context.Context, _ reprise.ID, _ reprise.Owner) context.Context {
	if s.has(bindLosesContext) {
		return context.Background()
	}
	return ctx
}

// Check implements [reprise.Checker].
func (s *Store) Check(ctx context.Context) ([]reprise.Finding, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	finding := reprise.Finding{Code: "not-for-use", Severity: reprise.Unsafe, Detail: "this store is for tests of the suite"}
	if s.has(findingsWithoutDetails) {
		finding.Detail = ""
	}
	return []reprise.Finding{finding}, nil
}
