package reprise

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// How a call that joined a shared claim treats its result: a result that may be older
// than the call, or that depends on a field of the leading call, makes it ask again.
func TestResultOfASharedClaim(t *testing.T) {
	t.Parallel()
	const again = Outcome(0) // ask again
	plain := func(*call) {}
	other := func(c *call) { c.fingerprint[0]++ }
	strict := func(c *call) { c.policy = store.Policy{AtMostOnce: true, Retention: time.Hour, Horizon: time.Hour} }
	bounded := func(c *call) { c.maxAttempts++ }
	for _, c := range []struct {
		name          string
		outcome       Outcome
		lead, joins   func(*call)
		first, second Outcome // of the first claim that the call joined, and of a later one
	}{
		{"claimed", Claimed, plain, plain, InProgress, InProgress},
		{"claimed by another request", Claimed, plain, other, Mismatch, Mismatch},
		{"claimed under another policy", Claimed, plain, strict, InProgress, InProgress},
		{"completed", Replayed, plain, plain, Replayed, Replayed},
		{"completed by another request", Replayed, plain, other, Mismatch, Mismatch},
		{"completed under another policy", Replayed, plain, strict, Replayed, Replayed},
		{"expired", Expired, plain, strict, Expired, Expired},
		{"expired by another request", Expired, plain, other, Mismatch, Mismatch},
		{"in progress", InProgress, plain, plain, again, InProgress},
		{"in progress by another request", InProgress, plain, other, again, Mismatch},
		{"lapsed", Lapsed, plain, plain, again, Lapsed},
		{"lapsed, under another policy", Lapsed, plain, strict, again, Lapsed},
		{"lapsed, with another limit", Lapsed, plain, bounded, again, again},
		{"lapsed by another request", Lapsed, plain, other, again, Mismatch},
		{"a mismatch", Mismatch, plain, plain, again, Mismatch},
		{"a mismatch of another request", Mismatch, plain, other, again, again},
	} {
		var lead, joins call
		c.lead(&lead)
		c.joins(&joins)
		claim := &sharedClaim{
			fingerprint: lead.fingerprint, maxAttempts: lead.maxAttempts, outcome: c.outcome, payload: []byte("answer"),
		}
		for round, want := range map[int]Outcome{1: c.first, 2: c.second, claimRounds: c.second} {
			res, ok := claim.answerTo(&joins, round)
			if ok != (want != again) || ok && res.Outcome != want {
				t.Errorf("%s, round %d: %v, %t, want %v", c.name, round, res.Outcome, ok, want)
			}
			if ok && (res.Payload != nil) != (want == Replayed) {
				t.Errorf("%s, round %d: %v with the payload %q", c.name, round, res.Outcome, res.Payload)
			}
		}
		claim.err = store.ErrUnavailable
		if _, ok := claim.answerTo(&joins, 2); ok {
			t.Errorf("%s: a claim that failed has an answer", c.name)
		}
	}
}

// A waiter whose patience ends at the instant at which its queue has a result gets the
// result.
func TestResultAtTheEndOfAWaitIsPreferred(t *testing.T) {
	t.Parallel()
	e := must(New(memstore.New(), Config{}))
	c := call{engine: e}
	q := &queue{waiters: []*waiter{{}}, done: make(chan struct{}), result: Result{Outcome: Replayed}} // behind its head
	close(q.done)
	e.waiters.queues, e.waiters.scopes = map[store.ID][]*queue{{}: {q}}, map[string]int{}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 64 { // select takes either
		if res, err := c.wait(ended, "", time.Minute); err != nil || res.Outcome != Replayed {
			t.Fatalf("the wait ends with %v, %v", res.Outcome, err)
		}
	}
}

// A renewer looks at its leases in a new order once the wall clock went ahead by 10 ms,
// and takes less for the difference of two readings.
func TestAClockThatWentAheadALittle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ahead   time.Duration
		aligned bool
	}{{0, false}, {10*time.Millisecond - 1, false}, {10 * time.Millisecond, true}, {time.Hour, true}, {-time.Hour, false}} {
		r, add, _ := renewing(t)
		at := now()
		r.skew = at.skew()
		deadline := at.add(2 * time.Hour)
		a := add(deadline, at.add(90*time.Minute), never)
		later := at
		later.wall += int64(c.ahead)
		r.align(later)
		if got := a.lease.deadline != deadline; got != c.aligned {
			t.Errorf("%v ahead: aligned %t, want %t", c.ahead, got, c.aligned)
		}
		if c.aligned && later.until(a.lease.deadline) != 2*time.Hour-c.ahead {
			t.Errorf("%v ahead: the deadline is in %v", c.ahead, later.until(a.lease.deadline))
		}
		if r.skew != later.skew() {
			t.Errorf("%v ahead: the skew is taken for %v, want %v", c.ahead, r.skew, later.skew())
		}
	}
}

// Between two tries of the background there is a pause, four times as long after each
// failure, up to a second.
func TestPausesOfTheBackground(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for d := time.Duration(0); len(got) < 6; {
		d = nextPause(d)
		got = append(got, d)
	}
	want := []time.Duration{10, 40, 160, 640, 1000, 1000}
	for i, d := range got {
		if d != want[i]*time.Millisecond {
			t.Errorf("the pauses are %v, want %v ms", got, want)
			break
		}
	}
}

// The times of a renewal are parts of the lease, with a bound where the lease is short or
// long.
func TestTimesOfARenewal(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration][4]time.Duration{ // local deadline, timeout, retry, sleep
		time.Second:      {750 * time.Millisecond, time.Second / 6, 50 * time.Millisecond, 250 * time.Millisecond},
		2 * time.Second:  {1750 * time.Millisecond, time.Second / 3, 100 * time.Millisecond, 500 * time.Millisecond},
		30 * time.Second: {27 * time.Second, 5 * time.Second, 1500 * time.Millisecond, time.Second},
		time.Hour:        {54 * time.Minute, 10 * time.Minute, 3 * time.Minute, time.Second},
	} {
		if got := [4]time.Duration{localDeadline(lease), renewalTimeout(lease), renewalRetry(lease), renewerSleep(lease)}; got != want {
			t.Errorf("of a lease of %v: %v, want %v", lease, got, want)
		}
	}
}

// An attempt that fell due while a batch was out is renewed by the next one, also where
// no other is due.
func TestOverdueAttemptThatIsAloneIsInTheNextBatch(t *testing.T) {
	t.Parallel()
	r, add, _ := renewing(t)
	at := now()
	alone := add(at.add(time.Hour), at.add(-time.Second), never)
	r.tick(true)
	if _, batch := r.tick(false); len(batch) != 1 || batch[0] != alone {
		t.Errorf("%d in the next batch, want the one", len(batch))
	}
}

// Two operations may share a row of the table: an attempt without a claim excludes its
// own duplicates only.
func TestUnprotectedAttemptsExcludeTheirOwnOperation(t *testing.T) {
	t.Parallel()
	protected, unprotected := &Attempt{call: call{id: store.ID{1}}}, &Attempt{call: call{id: store.ID{2}}, unprotected: true}
	protected.next = unprotected
	row := &tableRow{attempts: protected}
	for id, want := range map[store.ID]bool{{1}: false, {2}: true, {3}: false} {
		if got := row.runsUnprotected(id); got != want {
			t.Errorf("%v runs unprotected: %t, want %t", id.Short(), got, want)
		}
	}
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
