package engine

import (
	"context"
	"sync"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// modelRecord is what the model knows of an ID. Whether it is seen, live or lapsed
// follows from the instants.
type modelRecord struct {
	owner       reprise.Owner
	fingerprint reprise.Fingerprint
	completed   bool
	attempt     int
	lease       time.Time
	valid       time.Time
	payload     string
}

// model is the sequential meaning of an engine and its store: a page of code without a
// lease that is renewed, a reply that is lost, or two processes.
type model struct {
	sync.Mutex // held by whoever asks: renewals come from another goroutine
	records    map[reprise.ID]*modelRecord
}

// find returns the record of id, or nil when none is seen.
func (m *model) find(id reprise.ID) *modelRecord {
	rec, now := m.records[id], time.Now()
	if rec == nil || !now.Before(rec.valid) && (rec.completed || !now.Before(rec.lease)) {
		return nil
	}
	return rec
}

// claim says what a claim answers, and at which attempt.
func (m *model) claim(r reprise.ClaimRequest, takeover bool) (want reprise.Outcome, attempt int) {
	rec := m.find(r.ID)
	switch {
	case rec == nil:
		return reprise.Claimed, 1
	case rec.fingerprint != r.Fingerprint:
		return reprise.Mismatch, 0
	case rec.completed:
		return reprise.Completed, 0
	case rec.owner == r.Owner:
		return reprise.Claimed, rec.attempt
	case time.Now().Before(rec.lease):
		return reprise.InProgress, 0
	case !takeover, r.MaxAttempts > 0 && rec.attempt >= r.MaxAttempts:
		return reprise.Lapsed, 0
	default:
		return reprise.Claimed, rec.attempt + 1
	}
}

// completeStatus says how a completion is answered that the store took or did not, and
// then said who has the ID.
func completeStatus(taken bool, who reprise.Outcome) reprise.CompleteStatus {
	switch {
	case taken:
		return reprise.Recorded
	case who == reprise.Mismatch:
		return reprise.Unrecorded
	case who == reprise.Completed:
		return reprise.Superseded
	default:
		return reprise.Contested
	}
}

// modelStore asks the model at each call, since time passes between the tries of one
// operation, and tells it of the instant at which the store acted. It loses replies and
// refuses renewals on command.
type modelStore struct {
	reprise.Store
	model    *model
	deaf     bool // to renewals
	lose     int  // so many more replies of claims, completions and releases
	takeover bool // whether the claims of this step may take over

	outcome reprise.Outcome // of the last claim, says the model
	attempt int
	taken   bool // the last completion was, says the model
}

func (s *modelStore) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	s.model.Lock()
	defer s.model.Unlock()
	s.outcome, s.attempt = s.model.claim(r, s.takeover)
	if s.outcome == reprise.Claimed {
		now := time.Now()
		s.model.records[r.ID] = &modelRecord{
			owner: r.Owner, fingerprint: r.Fingerprint, attempt: s.attempt, lease: now.Add(r.Lease), valid: now.Add(r.Retention),
		}
	}
	res, err := s.Store.Claim(ctx, r)
	if s.loses() {
		return reprise.ClaimResult{}, reprise.ErrUnknown
	}
	return res, err
}

func (s *modelStore) Renew(ctx context.Context, rs []reprise.RenewRequest) ([]reprise.RenewStatus, error) {
	s.model.Lock()
	defer s.model.Unlock()
	if s.deaf {
		return nil, reprise.ErrUnavailable
	}
	for _, r := range rs {
		if rec := s.model.find(r.ID); rec != nil && rec.owner == r.Owner {
			rec.lease = time.Now().Add(r.Lease)
		}
	}
	return s.Store.Renew(ctx, rs)
}

func (s *modelStore) Complete(ctx context.Context, r reprise.CompleteRequest) error {
	s.model.Lock()
	defer s.model.Unlock()
	rec := s.model.find(r.ID)
	s.taken = rec != nil && rec.owner == r.Owner
	if s.taken && !rec.completed {
		rec.completed, rec.payload, rec.valid = true, string(r.Payload), time.Now().Add(r.Retention)
	}
	if err := s.Store.Complete(ctx, r); !s.loses() {
		return err
	}
	return reprise.ErrUnknown
}

func (s *modelStore) Release(ctx context.Context, id reprise.ID, owner reprise.Owner) error {
	s.model.Lock()
	defer s.model.Unlock()
	if rec := s.model.find(id); rec != nil && rec.owner == owner && !rec.completed {
		delete(s.model.records, id)
	}
	if err := s.Store.Release(ctx, id, owner); !s.loses() {
		return err
	}
	return reprise.ErrUnknown
}

// losing makes the next n replies be lost.
func (s *modelStore) losing(n int) {
	s.model.Lock()
	defer s.model.Unlock()
	s.lose = n
}

func (s *modelStore) loses() bool {
	if s.lose == 0 {
		return false
	}
	s.lose--
	return true
}
