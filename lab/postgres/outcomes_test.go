package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// errUndo undoes a transaction of a test.
var errUndo = errors.New("undo")

// TestPostgresClaimOutcomes: the outcome of a claim for a record, in the order of the
// Store contract, however its statements are sent. The instants at which it changes are
// those of a test of the store's own. A claim that is granted writes its whole record,
// and any other leaves the row as it was.
func TestPostgresClaimOutcomes(t *testing.T) {
	t.Parallel()
	const (
		ends  = pgNow
		lives = pgInAnHour
		ahead = 1 << 60 // a fence far ahead of the clock
	)
	first := pgClaim()
	first.Label = "orders"
	claim := func(change func(*store.ClaimRequest)) store.ClaimRequest {
		r := pgRival(first)
		change(&r)
		return r
	}
	plain := claim(func(*store.ClaimRequest) {})
	own := claim(func(r *store.ClaimRequest) { r.Owner = first.Owner })
	careful := claim(func(r *store.ClaimRequest) { r.Takeover = false })
	other := claim(func(r *store.ClaimRequest) { r.Fingerprint[0]++ })
	limit := func(n int) store.ClaimRequest { return claim(func(r *store.ClaimRequest) { r.MaxAttempts = n }) }
	type row struct{ lease, valid, more string }
	granted := func(attempt int, fence uint64) store.ClaimResult {
		return store.ClaimResult{Outcome: store.Claimed, Attempt: attempt, Fence: fence}
	}
	answer := func(o store.Outcome) store.ClaimResult { return store.ClaimResult{Outcome: o} }
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		f := pgSetup(t, servers.SharedPostgres(t), labtest.ExecMode(mode), labtest.MaxConns(2))
		st := f.Leased(t)
		pgMustClaim(t, st, first, store.Claimed)
		for name, test := range map[string]struct {
			row   row
			claim store.ClaimRequest
			want  store.ClaimResult
			err   error
		}{
			"running":                         {row{lives, lives, ""}, plain, answer(store.InProgress), nil},
			"running, the owner's":            {row{lives, ends, ""}, own, granted(3, ahead), nil},
			"running past its retention":      {row{lives, ends, ""}, plain, answer(store.InProgress), nil},
			"running, another request":        {row{lives, ends, ""}, other, answer(store.Mismatch), nil},
			"lapsed":                          {row{ends, lives, ""}, plain, granted(4, ahead+1), nil},
			"lapsed, behind the clock":        {row{ends, lives, ", fence = 1"}, plain, granted(4, 0), nil},
			"lapsed, the owner's":             {row{ends, lives, ""}, own, granted(3, ahead), nil},
			"lapsed, another request":         {row{ends, lives, ""}, other, answer(store.Mismatch), nil},
			"lapsed, at most once":            {row{ends, lives, ", at_most_once = 1"}, plain, answer(store.Lapsed), nil},
			"lapsed, at most once, owner's":   {row{ends, lives, ", at_most_once = 1"}, own, granted(3, ahead), nil},
			"at most once, past its validity": {row{ends, ends, ", at_most_once = 1"}, plain, granted(1, ahead+1), nil},
			"lapsed, no takeover":             {row{ends, lives, ""}, careful, answer(store.Lapsed), nil},
			"lapsed, no attempts left":        {row{ends, lives, ""}, limit(3), answer(store.Lapsed), nil},
			"lapsed, one attempt left":        {row{ends, lives, ""}, limit(4), granted(4, ahead+1), nil},
			"lapsed past its retention":       {row{ends, ends, ""}, other, granted(1, ahead+1), nil},
			"completed":                       {row{ends, lives, ", state = 2, payload = ''"}, plain, answer(store.Completed), nil},
			"replayed":                        {row{ends, lives, ", state = 2, payload = '', replay_until = " + ends}, plain, answer(store.Expired), nil},
			"emptied":                         {row{ends, lives, ", state = 2"}, plain, answer(store.Expired), nil},
			"emptied, another request":        {row{ends, lives, ", state = 2"}, other, answer(store.Mismatch), nil},
			"emptied, past its horizon":       {row{ends, ends, ", state = 2"}, careful, granted(1, ahead+1), nil},
			"completed, another request":      {row{ends, lives, ", state = 2, payload = ''"}, other, answer(store.Mismatch), nil},
			"completed, past its retention":   {row{ends, ends, ", state = 2, payload = ''"}, careful, granted(1, ahead+1), nil},
			"completed, expired, later clock": {row{lives, ends, ", state = 2, payload = ''"}, careful, granted(1, ahead+1), nil},
			"unreadable":                      {row{ends, lives, ", version = 2"}, plain, answer(0), store.ErrCorrupt},
			"unreadable past its retention":   {row{ends, ends, ", version = 2"}, plain, answer(0), store.ErrCorrupt},
		} {
			f.exec(t, "DELETE FROM "+f.records())
			f.exec(t, f.pgInsert("(SELECT $1::bytea AS id) AS s", map[string]string{
				"owner": "$2::bytea", "fingerprint": "$3::bytea", "fence": "$4::bigint", "attempt": "3", "state": "1", "payload": "NULL::bytea",
				"lease_until": test.row.lease, "valid_until": test.row.valid,
			}), first.ID[:], first.Owner[:], first.Fingerprint[:], int64(ahead))
			f.exec(t, f.pgDamage("attempt = 3"+test.row.more), first.ID[:])
			place := "SELECT ctid::text FROM " + f.records()
			before := pgValue[string](t, f.Pool, place)
			ctx, cancel := pgCall(t)
			got, err := st.Claim(ctx, test.claim)
			cancel()
			left := got.Remaining
			if got.Remaining, got.Payload = 0, nil; name == "lapsed, behind the clock" && got.Fence > 1 && got.Fence < ahead {
				got.Fence = 0
			}
			if !errors.Is(err, test.err) || err == nil && (got.Outcome != test.want.Outcome || got.Attempt != test.want.Attempt || got.Fence != test.want.Fence) {
				t.Errorf("%v: %s: %+v, %v; want %+v, %v", mode, name, got, err, test.want, test.err)
			}
			lapsed := name == "lapsed, the owner's" || name == "lapsed, at most once, owner's" // granted, without a lease
			least, most := time.Duration(0), time.Duration(0)
			switch {
			case lapsed:
				least = -time.Minute
			case got.Outcome == store.Claimed:
				least, most = test.claim.Lease-10*time.Second, test.claim.Lease
			case got.Outcome == store.InProgress:
				least, most = 59*time.Minute, time.Hour
			}
			if left < least || left > most {
				t.Errorf("%v: %s: %v of the lease are left, want %v to %v", mode, name, left, least, most)
			}
			writes := got.Outcome == store.Claimed && !lapsed
			if after := pgValue[string](t, f.Pool, place); (after != before) != writes {
				t.Errorf("%v: %s: the row was written: %t", mode, name, after != before)
			}
			if record, err := st.Inspect(t.Context(), first.ID); writes &&
				(err != nil || record.State != store.StateRunning || record.Policy != test.claim.Policy || record.Attempt != got.Attempt) {
				t.Errorf("%v: %s: the record of the claim is %+v, %v", mode, name, record, err)
			}
		}
	}
}

// TestPostgresReplayEndsAtItsInstant: the look of a claim and a batch of claims answer
// the payload until replay_until, and not at it. In a transaction now() stands still, so
// that it can be met.
func TestPostgresReplayEndsAtItsInstant(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(4), statements.option)
	r := pgClaim()
	pgMustClaim(t, f.Leased(t), r, store.Claimed)
	pgWant(t, "complete", pgComplete(t, f.Leased(t), r, pgBody), nil)
	pgMustClaim(t, f.Leased(t), pgRival(r), store.Completed)
	look := statements.find(t, "NOT pg_is_in_recovery()")
	batch := "SELECT * FROM " + f.name("reprise_records_claims_v1") + "(array[$1::bytea], array[''::bytea], array[''::bytea], array[1], array[1], array[0], array[''], array[0]::smallint[], array[''], true)"
	for what, text := range map[string]string{"look": look, "batch": batch} {
		for end, replayed := range map[string]bool{pgNow: false, pgNow + " + 1": true} {
			f.pgUndone(t, what, func(tx pgx.Tx) error {
				ctx := context.WithoutCancel(t.Context())
				if _, err := tx.Exec(ctx, f.pgDamage("replay_until = "+end), r.ID[:]); err != nil {
					return err
				}
				rows, err := tx.Query(ctx, text, r.ID[:])
				if err != nil {
					return err
				}
				rows.Next()
				values, err := rows.Values()
				rows.Close()
				if err == nil && (values[len(values)-1] != nil) != replayed {
					t.Errorf("%s: a replay that ends at %s has the payload %v", what, end, values[len(values)-1])
				}
				return err
			})
		}
	}
}

// TestPostgresLargeReplays: a response that is larger than a batch of claims answers is
// replayed whole, alone and to many callers at once.
func TestPostgresLargeReplays(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(2))
	st := f.Leased(t)
	r, body := pgClaim(), strings.Repeat("x", 64<<10+1)
	pgMustClaim(t, st, r, store.Claimed)
	pgWant(t, "complete", pgComplete(t, st, r, body), nil)
	for _, callers := range []int{1, manyCallers} {
		pgTogether(callers, func(int) {
			if got := pgMustClaim(t, st, pgRival(r), store.Completed); string(got.Payload) != body {
				t.Errorf("%d bytes are replayed of %d", len(got.Payload), len(body))
			}
		})
	}
}
