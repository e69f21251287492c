package reprisepg

import (
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/reprise-go/reprise/core/store"
)

// TestWhatAClaimMakesOfARecord: the decisions of the Store contract, in their order, at
// the instants where they change: at the end is expired.
func TestWhatAClaimMakesOfARecord(t *testing.T) {
	t.Parallel()
	const now = 1_000_000
	own, other := store.Owner{1}, store.Owner{2}
	fingerprint, another := store.Fingerprint{3}, store.Fingerprint{4}
	row := func(change func(*seen)) *seen {
		r := &seen{
			found: true, version: rowVersion, state: rowRunning, owner: other[:], fingerprint: fingerprint[:],
			attempt: 3, fence: now + 500, leaseUntil: now + 1, validUntil: now + 1, at: now, clock: now + 10,
		}
		change(r)
		return r
	}
	none := func(*seen) {}
	mine := func(r *seen) { r.owner = own[:] }
	lapsed := func(r *seen) { r.leaseUntil = now }
	expired := func(r *seen) { r.leaseUntil, r.validUntil = now, now }
	completed := func(r *seen) { r.state, r.payload, r.leaseUntil = rowCompleted, []byte{}, now-7 }
	and := func(changes ...func(*seen)) func(*seen) {
		return func(r *seen) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	claim := store.ClaimRequest{Owner: own, Fingerprint: fingerprint, Takeover: true, Validity: true}
	careful, limited, enough, foreign := claim, claim, claim, claim
	careful.Takeover, limited.MaxAttempts, enough.MaxAttempts, foreign.Fingerprint = false, 3, 4, another
	for name, test := range map[string]struct {
		row   *seen
		claim store.ClaimRequest
		want  string
	}{
		"nothing":                         {&seen{at: now, clock: now}, claim, wordNew},
		"running":                         {row(none), claim, wordInProgress},
		"running, the owner's":            {row(mine), claim, wordAgain},
		"running, another request":        {row(mine), foreign, wordMismatch},
		"running past its retention":      {row(func(r *seen) { r.validUntil = now }), claim, wordInProgress},
		"lapsed":                          {row(lapsed), claim, wordTakeover},
		"lapsed, another request":         {row(lapsed), foreign, wordMismatch},
		"lapsed, no takeover":             {row(lapsed), careful, wordLapsed},
		"lapsed, no attempts left":        {row(lapsed), limited, wordLapsed},
		"lapsed, one attempt left":        {row(lapsed), enough, wordTakeover},
		"lapsed, the owner's":             {row(and(lapsed, mine)), careful, wordOwnLapsed},
		"lapsed past its retention":       {row(expired), foreign, wordNew},
		"the owner's past its retention":  {row(and(expired, mine)), claim, wordNew},
		"completed":                       {row(completed), claim, wordCompleted},
		"completed, another request":      {row(completed), foreign, wordMismatch},
		"completed with a later clock":    {row(and(completed, func(r *seen) { r.leaseUntil = now + 1 })), claim, wordCompleted},
		"completed, past its retention":   {row(and(completed, func(r *seen) { r.validUntil = now })), foreign, wordNew},
		"completed, expired, later clock": {row(and(completed, func(r *seen) { r.validUntil, r.leaseUntil = now, now+1 })), foreign, wordNew},
		"another version":                 {row(func(r *seen) { r.version = 2 }), claim, wordCorrupt},
		"another version, expired":        {row(and(expired, func(r *seen) { r.version = 2 })), claim, wordCorrupt},
		"another state":                   {row(func(r *seen) { r.state = 3 }), claim, wordCorrupt},
		"a short owner":                   {row(func(r *seen) { r.owner = other[:15] }), claim, wordCorrupt},
		"a short fingerprint":             {row(func(r *seen) { r.fingerprint = fingerprint[:31] }), claim, wordCorrupt},
		"running with a payload":          {row(func(r *seen) { r.payload = []byte{} }), claim, wordCorrupt},
		"completed without a payload":     {row(and(completed, func(r *seen) { r.payload = nil })), claim, wordCorrupt},
	} {
		got := test.row.decide(&test.claim)
		if got.word != test.want {
			t.Errorf("%s: %s, want %s", name, got.word, test.want)
			continue
		}
		switch got.word {
		case wordNew, wordTakeover:
			attempt, fence := 1, max(test.row.clock, test.row.fence+1)
			if got.word == wordTakeover {
				attempt = 4
			}
			if got.attempt != attempt || got.fence != fence {
				t.Errorf("%s: attempt %d with fence %d, want %d with %d", name, got.attempt, got.fence, attempt, fence)
			}
		case wordCompleted:
			if got.payload == nil || got.validLeft != 1 || got.age != max(now-test.row.leaseUntil, 0) {
				t.Errorf("%s: valid for %d µs, %d µs old", name, got.validLeft, got.age)
			}
		default:
			if got.leaseLeft != test.row.leaseUntil-now || got.payload != nil || got.validLeft != 0 {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	behind := row(and(lapsed, func(r *seen) { r.clock = r.fence + 7 }))
	if got := behind.decide(&claim); got.fence != behind.clock {
		t.Errorf("fence %d of a takeover, want the clock %d", got.fence, behind.clock)
	}
	claim.Validity = false
	if got := row(completed).decide(&claim); got.validLeft != 0 || got.age != 0 {
		t.Errorf("a claim that does not ask is told that the record is valid for %d µs and %d µs old", got.validLeft, got.age)
	}
}

// TestInstantsOfTheServer: infinity lies at the ends of time, and NULL is zero.
func TestInstantsOfTheServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from pgtype.Timestamptz
		want instant
	}{
		{pgtype.Timestamptz{}, 0},
		{pgtype.Timestamptz{Valid: true, Time: time.UnixMicro(7)}, 7},
		{pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}, math.MaxInt64},
		{pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.NegativeInfinity}, math.MinInt64},
	} {
		i := instant(1)
		if err := i.ScanTimestamptz(test.from); err != nil || i != test.want {
			t.Errorf("%+v is %d, %v; want %d", test.from, i, err, test.want)
		}
	}
}

// TestACreationThatWaitedIsNoticed: the lease of a record that was created after a wait
// of 10 ms or more is not whole.
func TestACreationThatWaitedIsNoticed(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	for waited, want := range map[time.Duration]bool{
		0: false, slowClaim - time.Microsecond: false, slowClaim: false, slowClaim + time.Microsecond: true,
	} {
		c := createdRecord{clock: 5_000_000, fence: 5_000_000, leaseUntil: 5_000_000 + (lease - waited).Microseconds()}
		if got := c.waited(lease); got != want {
			t.Errorf("after a wait of %v: %t", waited, got)
		}
		if got := c.result(); got.Outcome != store.Claimed || got.Attempt != 1 || got.Fence != 5_000_000 || got.Remaining != lease-waited {
			t.Errorf("after a wait of %v: %+v", waited, got)
		}
	}
}

// TestAnAnswerIsARecordOrNone: a row of NULLs is no record, and an answer with too few
// columns is an error.
func TestAnAnswerIsARecordOrNone(t *testing.T) {
	t.Parallel()
	const columns, inFront = 12, 3 // the clocks and whether the server is a standby
	at := appendTimestamp(nil, 7)
	for name, test := range map[string]struct {
		columns       int
		found, failed bool
	}{
		"none": {columns, false, false}, "a record": {columns, true, false}, "too few": {inFront, false, true}, "too few of a record": {columns - 1, true, true},
	} {
		r := &row{columns: make([][]byte, columns)}
		r.columns[0], r.columns[1], r.columns[2] = at, at, binaryBool(false)
		if test.found {
			r.columns[inFront] = []byte{0, rowVersion}
		}
		r.columns = r.columns[:test.columns]
		var got seen
		if got.readAttempt(r); got.found != test.found || (r.err != nil) != test.failed || got.at != 7 || got.clock != 7 {
			t.Errorf("%s: %+v, %v", name, got, r.err)
		}
	}
}
