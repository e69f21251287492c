package record

import (
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// TestSeenRecordDecidesAClaimInTheOrderOfTheContract: the decisions of the Store
// contract, in their order, at the instants where they change: at the end is expired.
func TestSeenRecordDecidesAClaimInTheOrderOfTheContract(t *testing.T) {
	t.Parallel()
	const now = 1_000_000
	own, other := store.Owner{1}, store.Owner{2}
	fingerprint, another := store.Fingerprint{3}, store.Fingerprint{4}
	row := func(change func(*Seen)) *Seen {
		r := &Seen{
			Found: true, Version: Version, State: Running, Owner: other[:], Fingerprint: fingerprint[:],
			Attempt: 3, Fence: now + 500, LeaseUntil: now + 1, ValidUntil: now + 1, At: now, Clock: now + 10,
		}
		change(r)
		return r
	}
	none := func(*Seen) {}
	mine := func(r *Seen) { r.Owner = own[:] }
	lapsed := func(r *Seen) { r.LeaseUntil = now }
	expired := func(r *Seen) { r.LeaseUntil, r.ValidUntil = now, now }
	completed := func(r *Seen) { r.State, r.Payload, r.LeaseUntil = Completed, []byte{}, now-7 }
	replayed := func(r *Seen) { r.State, r.LeaseUntil = Completed, now-7 }
	once := func(r *Seen) { r.AtMostOnce = true }
	and := func(changes ...func(*Seen)) func(*Seen) {
		return func(r *Seen) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	claim := store.ClaimRequest{Owner: own, Fingerprint: fingerprint, Takeover: true}
	careful, limited, enough, foreign := claim, claim, claim, claim
	careful.Takeover, limited.MaxAttempts, enough.MaxAttempts, foreign.Fingerprint = false, 3, 4, another
	for name, test := range map[string]struct {
		row   *Seen
		claim store.ClaimRequest
		want  string
	}{
		"nothing":                         {&Seen{At: now, Clock: now}, claim, WordNew},
		"running":                         {row(none), claim, WordInProgress},
		"running, the owner's":            {row(mine), claim, WordAgain},
		"running, another request":        {row(mine), foreign, WordMismatch},
		"running past its retention":      {row(func(r *Seen) { r.ValidUntil = now }), claim, WordInProgress},
		"lapsed":                          {row(lapsed), claim, WordTakeover},
		"lapsed, another request":         {row(lapsed), foreign, WordMismatch},
		"lapsed, at most once":            {row(and(lapsed, once)), claim, WordLapsed},
		"lapsed, at most once, owner's":   {row(and(lapsed, once, mine)), claim, WordOwnLapsed},
		"lapsed, at most once, foreign":   {row(and(lapsed, once)), foreign, WordMismatch},
		"at most once, past its validity": {row(and(expired, once)), claim, WordNew},
		"lapsed, no takeover":             {row(lapsed), careful, WordLapsed},
		"lapsed, no attempts left":        {row(lapsed), limited, WordLapsed},
		"lapsed, one attempt left":        {row(lapsed), enough, WordTakeover},
		"lapsed, the owner's":             {row(and(lapsed, mine)), careful, WordOwnLapsed},
		"lapsed past its retention":       {row(expired), foreign, WordNew},
		"the owner's past its retention":  {row(and(expired, mine)), claim, WordNew},
		"completed":                       {row(completed), claim, WordCompleted},
		"completed, another request":      {row(completed), foreign, WordMismatch},
		"completed with a later clock":    {row(and(completed, func(r *Seen) { r.LeaseUntil = now + 1 })), claim, WordCompleted},
		"completed, past its retention":   {row(and(completed, func(r *Seen) { r.ValidUntil = now })), foreign, WordNew},
		"completed, expired, later clock": {row(and(completed, func(r *Seen) { r.ValidUntil, r.LeaseUntil = now, now+1 })), foreign, WordNew},
		"another version":                 {row(func(r *Seen) { r.Version = 2 }), claim, WordCorrupt},
		"another version, expired":        {row(and(expired, func(r *Seen) { r.Version = 2 })), claim, WordCorrupt},
		"another state":                   {row(func(r *Seen) { r.State = 3 }), claim, WordCorrupt},
		"a short owner":                   {row(func(r *Seen) { r.Owner = other[:15] }), claim, WordCorrupt},
		"a short fingerprint":             {row(func(r *Seen) { r.Fingerprint = fingerprint[:31] }), claim, WordCorrupt},
		"running with a payload":          {row(func(r *Seen) { r.Payload = []byte{} }), claim, WordCorrupt},
		"replayed":                        {row(replayed), claim, WordExpired},
		"replayed, another request":       {row(replayed), foreign, WordMismatch},
		"replayed, past its horizon":      {row(and(replayed, func(r *Seen) { r.ValidUntil = now })), claim, WordNew},
	} {
		got := test.row.Decide(&test.claim)
		if got.Word != test.want {
			t.Errorf("%s: %s, want %s", name, got.Word, test.want)
			continue
		}
		switch got.Word {
		case WordNew, WordTakeover:
			attempt, fence := 1, max(test.row.Clock, test.row.Fence+1)
			if got.Word == WordTakeover {
				attempt = 4
			}
			if got.Attempt != attempt || got.Fence != fence {
				t.Errorf("%s: attempt %d with fence %d, want %d with %d", name, got.Attempt, got.Fence, attempt, fence)
			}
		case WordCompleted:
			if got.Payload == nil {
				t.Errorf("%s: the payload is missing", name)
			}
		default:
			if got.leaseLeft != test.row.LeaseUntil-now || got.Payload != nil {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	behind := row(and(lapsed, func(r *Seen) { r.Clock = r.Fence + 7 }))
	if got := behind.Decide(&claim); got.Fence != behind.Clock {
		t.Errorf("fence %d of a takeover, want the clock %d", got.Fence, behind.Clock)
	}
}
