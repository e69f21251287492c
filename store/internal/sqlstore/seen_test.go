package sqlstore

import (
	"errors"
	"testing"
	"time"

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
			Attempt: 3, Fence: now + 500, LeaseUntil: now + 1, ValidUntil: now + 1, At: now,
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
	claim := store.ClaimRequest{Owner: own, Fingerprint: fingerprint, Lease: time.Minute, Takeover: true}
	careful, limited, enough, foreign := claim, claim, claim, claim
	careful.Takeover, limited.MaxAttempts, enough.MaxAttempts, foreign.Fingerprint = false, 3, 4, another
	for name, test := range map[string]struct {
		row   *Seen
		claim store.ClaimRequest
		want  string
	}{
		"nothing":                         {&Seen{At: now}, claim, "new"},
		"running":                         {row(none), claim, store.InProgress.String()},
		"running, the owner's":            {row(mine), claim, "again"},
		"running, another request":        {row(mine), foreign, store.Mismatch.String()},
		"running past its retention":      {row(func(r *Seen) { r.ValidUntil = now }), claim, store.InProgress.String()},
		"lapsed":                          {row(lapsed), claim, "takeover"},
		"lapsed, an old fence":            {row(and(lapsed, func(r *Seen) { r.Fence = now - 7 })), claim, "takeover"},
		"lapsed, another request":         {row(lapsed), foreign, store.Mismatch.String()},
		"lapsed, at most once":            {row(and(lapsed, once)), claim, store.Lapsed.String()},
		"lapsed, at most once, owner's":   {row(and(lapsed, once, mine)), claim, "own lapsed"},
		"lapsed, at most once, foreign":   {row(and(lapsed, once)), foreign, store.Mismatch.String()},
		"at most once, past its validity": {row(and(expired, once)), claim, "new"},
		"lapsed, no takeover":             {row(lapsed), careful, store.Lapsed.String()},
		"unknown":                         {row(func(r *Seen) { r.AtMostOnce, r.LeaseUntil = true, 0 }), claim, store.Lapsed.String()},
		"lapsed, no attempts left":        {row(lapsed), limited, store.Lapsed.String()},
		"lapsed, one attempt left":        {row(lapsed), enough, "takeover"},
		"lapsed, the owner's":             {row(and(lapsed, mine)), careful, "own lapsed"},
		"lapsed past its retention":       {row(expired), foreign, "new"},
		"the owner's past its retention":  {row(and(expired, mine)), claim, "new"},
		"completed":                       {row(completed), claim, store.Completed.String()},
		"completed, another request":      {row(completed), foreign, store.Mismatch.String()},
		"completed with a later clock":    {row(and(completed, func(r *Seen) { r.LeaseUntil = now + 1 })), claim, store.Completed.String()},
		"completed, past its retention":   {row(and(completed, func(r *Seen) { r.ValidUntil = now })), foreign, "new"},
		"completed, expired, later clock": {row(and(completed, func(r *Seen) { r.ValidUntil, r.LeaseUntil = now, now+1 })), foreign, "new"},
		"another version":                 {row(func(r *Seen) { r.Version = 2 }), claim, "corrupt"},
		"another version, expired":        {row(and(expired, func(r *Seen) { r.Version = 2 })), claim, "corrupt"},
		"another state":                   {row(func(r *Seen) { r.State = 3 }), claim, "corrupt"},
		"a short owner":                   {row(func(r *Seen) { r.Owner = other[:15] }), claim, "corrupt"},
		"a short fingerprint":             {row(func(r *Seen) { r.Fingerprint = fingerprint[:31] }), claim, "corrupt"},
		"running with a payload":          {row(func(r *Seen) { r.Payload = []byte{} }), claim, "corrupt"},
		"replayed":                        {row(replayed), claim, store.Expired.String()},
		"replayed, another request":       {row(replayed), foreign, store.Mismatch.String()},
		"replayed, past its horizon":      {row(and(replayed, func(r *Seen) { r.ValidUntil = now })), claim, "new"},
	} {
		got, writes, err := test.row.decide("db", &test.claim)
		if _, answered, _ := test.row.Answer("db", &test.claim); answered != (!writes && (test.want != store.Lapsed.String() || name == "unknown")) {
			t.Errorf("%s: answered by a row that others may be writing: %t", name, answered)
		}
		word := got.Outcome.String()
		switch claimed := got.Outcome == store.Claimed; {
		case errors.Is(err, store.ErrCorrupt):
			word = "corrupt"
		case claimed && !writes:
			word = "own lapsed"
		case claimed && got.Fence == uint64(test.row.Fence):
			word = "again"
		case claimed && got.Attempt == 1:
			word = "new"
		case claimed:
			word = "takeover"
		}
		if word != test.want {
			t.Errorf("%s: %s, want %s", name, word, test.want)
			continue
		}
		attempt, fence, left := test.row.Attempt, test.row.Fence, claim.Lease
		switch word {
		case "new":
			attempt, fence = 1, max(test.row.At, fence+1)
		case "takeover":
			attempt, fence = 4, max(test.row.At, fence+1)
		case "again":
		case "own lapsed", store.InProgress.String():
			left = time.Duration(test.row.LeaseUntil-now) * time.Microsecond
		default:
			left = 0
		}
		if got.Outcome != store.Claimed {
			attempt, fence = 0, 0
		}
		if got.Attempt != attempt || got.Fence != uint64(fence) || got.Remaining != left || (got.Payload != nil) != (got.Outcome == store.Completed) {
			t.Errorf("%s: %+v, want attempt %d with fence %d, and a lease of %v", name, got, attempt, fence, left)
		}
	}
}
