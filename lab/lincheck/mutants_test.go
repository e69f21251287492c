package lincheck

import (
	"context"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// flaw is one way to get a store wrong.
type flaw string

// The flaws that a history has to show.
var flaws = []flaw{
	"unfenced complete", "state-only complete", "unfenced release", "renew by anyone", "takeover ignoring the fingerprint",
	"lease early", "takeover of completed",
}

// mutant is a small store, right unless it has a flaw: the model with a clock and a lock.
type mutant struct {
	flaw    flaw
	start   time.Time
	mu      sync.Mutex
	records map[reprise.ID]record
	fence   uint64
}

// do applies an operation at this instant.
func (m *mutant) do(in input) output {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Since(m.start)
	at := window{now, now}
	r := m.records[in.id]
	passed, expired := now >= r.lease.to, now >= r.valid.to
	seen := r.seen(passed, expired).held
	switch {
	case m.flaw == "unfenced complete" && in.kind == complete && seen && !r.completed,
		m.flaw == "unfenced release" && in.kind == release && seen && !r.completed,
		m.flaw == "renew by anyone" && in.kind == renew && seen && !r.completed:
		in.owner = r.owner
	case m.flaw == "state-only complete" && in.kind == complete && r.held:
		in.owner, expired = r.owner, false // also when it is not valid any more
	case m.flaw == "takeover ignoring the fingerprint" && in.kind == claim && seen && passed && !r.completed:
		in.print = r.print
	case m.flaw == "lease early" && in.kind == claim && seen && !r.completed:
		passed = now >= r.lease.to-3*time.Millisecond
	case m.flaw == "takeover of completed" && in.kind == claim && seen && r.completed && r.owner != in.owner && now >= r.lease.to:
		r.completed = false
	}
	next, out := r.seen(passed, expired).apply(in, at, passed)
	if out.outcome == reprise.Claimed {
		if !seen || r.owner != in.owner {
			m.fence++
			next.fence = m.fence
		}
		out.fence = next.fence
	}
	m.records[in.id] = next
	return out
}

func (m *mutant) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	if ctx.Err() != nil {
		return reprise.ClaimResult{}, reprise.ErrUnavailable
	}
	out := m.do(input{kind: claim, id: r.ID, owner: r.Owner, print: r.Fingerprint, lease: r.Lease, retention: r.Retention, takeover: r.Takeover, attempts: r.MaxAttempts})
	return reprise.ClaimResult{Outcome: out.outcome, Attempt: out.attempt, Fence: out.fence, Payload: []byte(out.payload), Remaining: r.Lease}, nil
}

func (m *mutant) Renew(_ context.Context, rs []reprise.RenewRequest) ([]reprise.RenewStatus, error) {
	answers := make([]reprise.RenewStatus, len(rs))
	for i, r := range rs {
		answers[i] = m.do(input{kind: renew, id: r.ID, owner: r.Owner, lease: r.Lease}).renewal
	}
	return answers, nil
}

func (m *mutant) Complete(_ context.Context, r reprise.CompleteRequest) error {
	if !m.do(input{kind: complete, id: r.ID, owner: r.Owner, retention: r.Retention, payload: string(r.Payload)}).accepted {
		return reprise.ErrLeaseLost
	}
	return nil
}

func (m *mutant) Release(_ context.Context, id reprise.ID, owner reprise.Owner) error {
	m.do(input{kind: release, id: id, owner: owner})
	return nil
}

func newMutant(f flaw) *deployment {
	return &deployment{stores: []reprise.Store{&mutant{flaw: f, start: time.Now(), records: map[reprise.ID]record{}}}}
}

// TestStoreWithoutFlawIsLinearizable: the small store that the mutants are made of is
// right, so that what is found of a mutant is its flaw.
func TestStoreWithoutFlawIsLinearizable(t *testing.T) {
	t.Parallel()
	checked(t, newMutant(""), everything...)
}

// TestEveryFlawIsFound: no history of a flawed store is taken for one of a good store
// again and again.
func TestEveryFlawIsFound(t *testing.T) {
	t.Parallel()
	const tries = 10
	for _, f := range flaws {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(tries) {
				if !history(t, newMutant(f), seed).check(t, seed) {
					return
				}
			}
			t.Errorf("%d histories of a store with %q have an explanation", tries, f)
		})
	}
}
