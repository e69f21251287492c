package lincheck

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// flaw is one way to get a store wrong.
type flaw string

// The flaws that a history has to show.
var flaws = []flaw{
	"unfenced complete", "state-only complete", "unfenced release", "renew by anyone", "takeover ignoring the fingerprint",
	"lease early", "takeover of completed", "takeover of at-most-once", "replayed beyond the retention",
	"unknown keeps its owner", "unknown of a stranger", "lapsed attempt in progress", "forgotten early", "remaining too long",
}

// mutant is a small store, right unless it has a flaw: the model with a clock and a lock.
type mutant struct {
	flaw    flaw
	start   time.Time
	mu      sync.Mutex
	records map[store.ID]record
	fence   uint64
}

// do applies an operation at this instant, and returns the record that it leaves behind.
func (m *mutant) do(in input) (record, answer, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Since(m.start)
	at := window{now, now}
	r := m.records[in.id]
	lapsed, expired := now >= r.lease.to, now >= r.valid.to
	seen := r.seen(lapsed, expired).held
	switch {
	case m.flaw == "unfenced complete" && in.kind == complete && seen && !r.completed,
		m.flaw == "unfenced release" && in.kind == release && seen && !r.completed,
		m.flaw == "renew by anyone" && in.kind == renew && seen && !r.completed:
		in.owner = r.owner
	case m.flaw == "state-only complete" && in.kind == complete && r.held:
		in.owner, expired = r.owner, false // also when it is not valid any more
	case m.flaw == "takeover ignoring the fingerprint" && in.kind == claim && seen && lapsed && !r.completed:
		in.print = r.print
	case m.flaw == "lease early" && in.kind == claim && seen && !r.completed:
		lapsed = now >= r.lease.to-3*time.Millisecond
	case m.flaw == "lapsed attempt in progress" && in.kind == claim && seen && !r.completed && r.owner != in.owner:
		lapsed = false
	case m.flaw == "takeover of completed" && in.kind == claim && seen && r.completed && r.owner != in.owner && in.takeover:
		r.completed, lapsed = false, true
	case m.flaw == "takeover of at-most-once" && in.kind == claim && seen:
		r.policy.AtMostOnce = false
	case m.flaw == "replayed beyond the retention" && r.completed:
		lapsed = false
	case m.flaw == "forgotten early" && in.kind == complete:
		in.policy.Retention /= 2
	}
	if m.flaw == "unknown of a stranger" && in.kind == unknown && seen && !r.completed {
		in.owner = r.owner
	}
	next, out := r.seen(lapsed, expired).apply(in, at, lapsed)
	if m.flaw == "unknown keeps its owner" && in.kind == unknown && out.accepted {
		next.owner = in.owner
	}
	if out.outcome == store.Claimed && (!seen || r.owner != in.owner) {
		m.fence++
		next.fence = m.fence
	}
	m.records[in.id] = next
	return next, out, now
}

func (m *mutant) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if ctx.Err() != nil {
		return store.ClaimResult{}, store.ErrUnavailable
	}
	record, out, now := m.do(input{kind: claim, id: r.ID, owner: r.Owner, print: r.Fingerprint, lease: r.Lease, policy: r.Policy, takeover: r.Takeover, attempts: r.MaxAttempts})
	res := store.ClaimResult{Outcome: out.outcome, Attempt: out.attempt, Payload: []byte(out.payload)}
	switch out.outcome { //nolint:exhaustive // the others say nothing more
	case store.Claimed:
		res.Fence, res.Remaining = record.fence, record.lease.to-now
	case store.InProgress:
		res.Remaining = record.lease.to - now
	}
	if m.flaw == "remaining too long" {
		res.Remaining *= 2
	}
	return res, nil
}

func (m *mutant) Renew(_ context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	answers := make([]store.RenewStatus, len(rs))
	for i, r := range rs {
		_, out, _ := m.do(input{kind: renew, id: r.ID, owner: r.Owner, lease: r.Lease})
		answers[i] = out.renewal
	}
	return answers, nil
}

func (m *mutant) Complete(_ context.Context, r store.CompleteRequest) error {
	if _, out, _ := m.do(input{kind: complete, id: r.ID, owner: r.Owner, policy: r.Policy, payload: string(r.Payload)}); !out.accepted {
		return store.ErrLeaseLost
	}
	return nil
}

func (m *mutant) Release(_ context.Context, id store.ID, owner store.Owner) error {
	m.do(input{kind: release, id: id, owner: owner})
	return nil
}

func (m *mutant) Unknown(_ context.Context, r store.UnknownRequest) error {
	if _, out, _ := m.do(input{kind: unknown, id: r.ID, owner: r.Owner}); !out.accepted {
		return store.ErrLeaseLost
	}
	return nil
}

func newMutant(f flaw) *deployment {
	return &deployment{
		stores: []store.Store{&mutant{flaw: f, start: time.Now(), records: map[store.ID]record{}}},
		clock:  memoryClock,
	}
}

// TestStoreWithoutFlawIsLinearizable: the small store below the mutants is correct, so a
// violation of a mutant is due to its flaw.
func TestStoreWithoutFlawIsLinearizable(t *testing.T) {
	t.Parallel()
	checked(t, newMutant(""), everything...)
}

// found demands that a history of a flawed deployment has no explanation. Not every
// history meets the flaw.
func found(t *testing.T, d *deployment) {
	t.Helper()
	const tries = 50 // and for a minute, since a busy machine meets the flaw less often
	until := time.Now().Add(time.Minute)
	for seed := uint64(0); seed < tries || time.Now().Before(until); seed++ {
		if !history(t, d, seed).check(t, seed) {
			t.Logf("found by history %d", seed+1)
			return
		}
	}
	t.Error("all histories have an explanation")
}

// TestEveryFlawIsFound: no history of a flawed store is taken for one of a good store
// again and again.
func TestEveryFlawIsFound(t *testing.T) {
	t.Parallel()
	for _, f := range flaws {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			found(t, newMutant(f))
		})
	}
}
