package engine

import (
	"context"
	"sync"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// modelRecord is the state of an ID in the model. Whether it is visible, live or lapsed
// follows from the instants.
type modelRecord struct {
	owner       store.Owner
	fingerprint store.Fingerprint
	completed   bool
	unknown     bool // its owner said that its outcome is unknown
	attempt     int
	strict      bool // claimed with AtMostOnce
	lease       time.Time
	valid       time.Time
	payload     string
}

// model is the sequential meaning of an engine and its store: a page of code without a
// lease that is renewed, a reply that is lost, or two processes.
type model struct {
	sync.Mutex // renewals come from another goroutine
	records    map[store.ID]*modelRecord
}

// find returns the record of id, or nil when none is seen.
func (m *model) find(id store.ID) *modelRecord {
	rec, now := m.records[id], time.Now()
	if rec == nil || !now.Before(rec.valid) && (rec.completed || !now.Before(rec.lease)) {
		return nil
	}
	return rec
}

// claim returns the outcome and the attempt number of a claim.
func (m *model) claim(r store.ClaimRequest, takeover bool) (want store.Outcome, attempt int) {
	rec := m.find(r.ID)
	switch {
	case rec == nil:
		return store.Claimed, 1
	case rec.fingerprint != r.Fingerprint:
		return store.Mismatch, 0
	case rec.completed:
		return store.Completed, 0
	case rec.unknown:
		return store.Lapsed, 0
	case rec.owner == r.Owner:
		return store.Claimed, rec.attempt
	case time.Now().Before(rec.lease):
		return store.InProgress, 0
	case rec.strict, !takeover, r.MaxAttempts > 0 && rec.attempt >= r.MaxAttempts:
		return store.Lapsed, 0
	default:
		return store.Claimed, rec.attempt + 1
	}
}

// unresolved reports whether the record of id waits for an operator.
func (m *model) unresolved(id store.ID) bool {
	rec := m.find(id)
	return rec != nil && rec.unknown && !rec.completed
}

// completeStatus says how a completion is answered that the store took or did not, and
// then said who has the ID.
func completeStatus(taken bool, who store.Outcome) reprise.AttemptEnd {
	switch {
	case taken:
		return reprise.EndRecorded
	case who == store.Mismatch:
		return reprise.EndUnrecorded
	case who == store.Completed:
		return reprise.EndSuperseded
	default:
		return reprise.EndContested
	}
}

// modelStore asks the model at each call, since time passes between the tries of one
// operation, and tells it of the instant at which the store acted. It loses replies and
// refuses renewals on command.
type modelStore struct {
	store.Store
	model    *model
	deaf     bool // to renewals
	lose     int  // so many more replies of claims, completions, releases and marks
	takeover bool // whether the claims of this step may take over

	outcome store.Outcome // of the last claim, says the model
	attempt int
	taken   bool // the last completion or mark was, says the model
}

func (s *modelStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	s.model.Lock()
	defer s.model.Unlock()
	s.outcome, s.attempt = s.model.claim(r, s.takeover)
	if s.outcome == store.Claimed {
		now := time.Now()
		s.model.records[r.ID] = &modelRecord{
			owner: r.Owner, fingerprint: r.Fingerprint, attempt: s.attempt, strict: r.AtMostOnce, lease: now.Add(r.Lease), valid: now.Add(r.Retention),
		}
	}
	res, err := s.Store.Claim(ctx, r)
	if s.loses() {
		return store.ClaimResult{}, store.ErrUnknown
	}
	return res, err
}

func (s *modelStore) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	s.model.Lock()
	defer s.model.Unlock()
	if s.deaf {
		return nil, store.ErrUnavailable
	}
	for _, r := range rs {
		if rec := s.model.find(r.ID); rec != nil && rec.owner == r.Owner && !rec.unknown {
			rec.lease = time.Now().Add(r.Lease)
		}
	}
	return s.Store.Renew(ctx, rs)
}

func (s *modelStore) Complete(ctx context.Context, r store.CompleteRequest) error {
	s.model.Lock()
	defer s.model.Unlock()
	rec := s.model.find(r.ID)
	s.taken = rec != nil && rec.owner == r.Owner && !rec.unknown
	if s.taken && !rec.completed {
		rec.completed, rec.payload, rec.valid = true, string(r.Payload), time.Now().Add(r.Retention)
	}
	if err := s.Store.Complete(ctx, r); !s.loses() {
		return err
	}
	return store.ErrUnknown
}

func (s *modelStore) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	s.model.Lock()
	defer s.model.Unlock()
	if rec := s.model.find(id); rec != nil && rec.owner == owner && !rec.completed && !rec.unknown {
		delete(s.model.records, id)
	}
	if err := s.Store.Release(ctx, id, owner); !s.loses() {
		return err
	}
	return store.ErrUnknown
}

func (s *modelStore) Unknown(ctx context.Context, r store.UnknownRequest) error {
	s.model.Lock()
	defer s.model.Unlock()
	rec := s.model.find(r.ID)
	s.taken = rec != nil && rec.owner == r.Owner && !rec.completed
	if s.taken && !rec.unknown {
		rec.unknown, rec.lease, rec.valid = true, time.Now(), time.Now().Add(modelRetention)
	}
	if err := s.Store.Unknown(ctx, r); !s.loses() {
		return err
	}
	return store.ErrUnknown
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
