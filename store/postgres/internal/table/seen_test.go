package table

import (
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
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
			Found: true, Version: rowVersion, State: rowRunning, Owner: other[:], Fingerprint: fingerprint[:],
			Attempt: 3, Fence: now + 500, LeaseUntil: now + 1, ValidUntil: now + 1, At: now, Clock: now + 10,
		}
		change(r)
		return r
	}
	none := func(*Seen) {}
	mine := func(r *Seen) { r.Owner = own[:] }
	lapsed := func(r *Seen) { r.LeaseUntil = now }
	expired := func(r *Seen) { r.LeaseUntil, r.ValidUntil = now, now }
	completed := func(r *Seen) { r.State, r.Payload, r.LeaseUntil = rowCompleted, []byte{}, now-7 }
	replayed := func(r *Seen) { r.State, r.LeaseUntil = rowCompleted, now-7 }
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
		"nothing":                         {&Seen{At: now, Clock: now}, claim, wordNew},
		"running":                         {row(none), claim, wordInProgress},
		"running, the owner's":            {row(mine), claim, wordAgain},
		"running, another request":        {row(mine), foreign, wordMismatch},
		"running past its retention":      {row(func(r *Seen) { r.ValidUntil = now }), claim, wordInProgress},
		"lapsed":                          {row(lapsed), claim, WordTakeover},
		"lapsed, another request":         {row(lapsed), foreign, wordMismatch},
		"lapsed, at most once":            {row(and(lapsed, once)), claim, wordLapsed},
		"lapsed, at most once, owner's":   {row(and(lapsed, once, mine)), claim, wordOwnLapsed},
		"lapsed, at most once, foreign":   {row(and(lapsed, once)), foreign, wordMismatch},
		"at most once, past its validity": {row(and(expired, once)), claim, wordNew},
		"lapsed, no takeover":             {row(lapsed), careful, wordLapsed},
		"lapsed, no attempts left":        {row(lapsed), limited, wordLapsed},
		"lapsed, one attempt left":        {row(lapsed), enough, WordTakeover},
		"lapsed, the owner's":             {row(and(lapsed, mine)), careful, wordOwnLapsed},
		"lapsed past its retention":       {row(expired), foreign, wordNew},
		"the owner's past its retention":  {row(and(expired, mine)), claim, wordNew},
		"completed":                       {row(completed), claim, wordCompleted},
		"completed, another request":      {row(completed), foreign, wordMismatch},
		"completed with a later clock":    {row(and(completed, func(r *Seen) { r.LeaseUntil = now + 1 })), claim, wordCompleted},
		"completed, past its retention":   {row(and(completed, func(r *Seen) { r.ValidUntil = now })), foreign, wordNew},
		"completed, expired, later clock": {row(and(completed, func(r *Seen) { r.ValidUntil, r.LeaseUntil = now, now+1 })), foreign, wordNew},
		"another version":                 {row(func(r *Seen) { r.Version = 2 }), claim, wordCorrupt},
		"another version, expired":        {row(and(expired, func(r *Seen) { r.Version = 2 })), claim, wordCorrupt},
		"another state":                   {row(func(r *Seen) { r.State = 3 }), claim, wordCorrupt},
		"a short owner":                   {row(func(r *Seen) { r.Owner = other[:15] }), claim, wordCorrupt},
		"a short fingerprint":             {row(func(r *Seen) { r.Fingerprint = fingerprint[:31] }), claim, wordCorrupt},
		"running with a payload":          {row(func(r *Seen) { r.Payload = []byte{} }), claim, wordCorrupt},
		"replayed":                        {row(replayed), claim, wordExpired},
		"replayed, another request":       {row(replayed), foreign, wordMismatch},
		"replayed, past its horizon":      {row(and(replayed, func(r *Seen) { r.ValidUntil = now })), claim, wordNew},
	} {
		got := test.row.Decide(&test.claim)
		if got.Word != test.want {
			t.Errorf("%s: %s, want %s", name, got.Word, test.want)
			continue
		}
		switch got.Word {
		case wordNew, WordTakeover:
			attempt, fence := 1, max(test.row.Clock, test.row.Fence+1)
			if got.Word == WordTakeover {
				attempt = 4
			}
			if got.Attempt != attempt || got.Fence != fence {
				t.Errorf("%s: attempt %d with fence %d, want %d with %d", name, got.Attempt, got.Fence, attempt, fence)
			}
		case wordCompleted:
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

// TestInstantScansInfinityAndNull: infinity lies at the ends of time, and NULL is zero.
func TestInstantScansInfinityAndNull(t *testing.T) {
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

// TestSeenReadsARecordOrNone: a row whose version is NULL is no record, or one that the
// statement wrote, and an answer with too few columns is an error.
func TestSeenReadsARecordOrNone(t *testing.T) {
	t.Parallel()
	at := wire.AppendTimestamp(nil, 7)
	for form, test := range map[string]struct {
		clocks [][]byte // in front of the record
		read   func(*Seen, *wire.Row)
	}{
		"of a claim":      {[][]byte{at}, (*Seen).Read},
		"of a claim's tx": {[][]byte{at, at, wire.BinaryBool(false)}, (*Seen).ReadAttempt},
	} {
		columns := len(test.clocks) + 10
		for name, answer := range map[string]struct {
			columns       int
			found, failed bool
		}{
			"none": {columns, false, false}, "a record": {columns, true, false},
			"too few": {len(test.clocks), false, true}, "too few of a record": {columns - 1, true, true},
		} {
			r := &wire.Row{Columns: make([][]byte, columns)}
			copy(r.Columns, test.clocks)
			if answer.found {
				r.Columns[len(test.clocks)] = []byte{0, rowVersion}
			}
			r.Columns[len(test.clocks)+5] = wire.AppendInt8(nil, 40)
			r.Columns = r.Columns[:answer.columns]
			var got Seen
			test.read(&got, r)
			whole := answer.columns > len(test.clocks)+5
			if got.Found != answer.found || (r.Err != nil) != answer.failed || got.At != 7 || got.Clock != 7 || (got.Fence == 40) != whole {
				t.Errorf("%s, %s: %+v, %v", form, name, got, r.Err)
			}
		}
	}
}
