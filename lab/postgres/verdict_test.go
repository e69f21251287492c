package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/servers"
)

// errUndo undoes a transaction of a test.
var errUndo = errors.New("undo")

// TestPostgresClaimOutcomeAtItsInstants: the outcome of a claim's function for a record,
// in the order of the Store contract, at the instants where it changes: at the end is
// expired. In a transaction now() stands still, so that the instants can be met.
func TestPostgresClaimOutcomeAtItsInstants(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	first := pgClaim()
	pgMustClaim(t, st, first, store.Claimed)
	ctx := t.Context()

	const (
		ends  = "now()"
		lives = "now() + interval '1 microsecond'"
		ahead = 1 << 60 // a fence far ahead of the clock
	)
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
	for name, test := range map[string]struct {
		row     row
		claim   store.ClaimRequest
		verdict string
		attempt int // of a claim that is granted; the record has 3
		fence   int64
	}{
		"running":                         {row{lives, lives, ""}, plain, "in progress", 0, 0},
		"running, the owner's":            {row{lives, ends, ""}, own, "claimed", 3, ahead},
		"running past its retention":      {row{lives, ends, ""}, plain, "in progress", 0, 0},
		"running, another request":        {row{lives, ends, ""}, other, "mismatch", 0, 0},
		"lapsed":                          {row{ends, lives, ""}, plain, "claimed", 4, ahead + 1},
		"lapsed, the owner's":             {row{ends, lives, ""}, own, "own lapsed", 0, 0},
		"lapsed, another request":         {row{ends, lives, ""}, other, "mismatch", 0, 0},
		"lapsed, at most once":            {row{ends, lives, ", at_most_once = true"}, plain, "lapsed", 0, 0},
		"lapsed, at most once, owner's":   {row{ends, lives, ", at_most_once = true"}, own, "own lapsed", 0, 0},
		"at most once, past its validity": {row{ends, ends, ", at_most_once = true"}, plain, "claimed", 1, ahead + 1},
		"lapsed, no takeover":             {row{ends, lives, ""}, careful, "lapsed", 0, 0},
		"lapsed, no attempts left":        {row{ends, lives, ""}, limit(3), "lapsed", 0, 0},
		"lapsed, one attempt left":        {row{ends, lives, ""}, limit(4), "claimed", 4, ahead + 1},
		"lapsed past its retention":       {row{ends, ends, ""}, other, "claimed", 1, ahead + 1},
		"completed":                       {row{ends, lives, ", state = 2, payload = ''"}, plain, "completed", 0, 0},
		"replayed":                        {row{ends, lives, ", state = 2, payload = '', expires_at = " + ends}, plain, "expired", 0, 0},
		"replayed until the next":         {row{ends, lives, ", state = 2, payload = '', expires_at = " + lives}, plain, "completed", 0, 0},
		"emptied":                         {row{ends, lives, ", state = 2"}, plain, "expired", 0, 0},
		"emptied, another request":        {row{ends, lives, ", state = 2"}, other, "mismatch", 0, 0},
		"emptied, past its horizon":       {row{ends, ends, ", state = 2"}, careful, "claimed", 1, ahead + 1},
		"completed, another request":      {row{ends, lives, ", state = 2, payload = ''"}, other, "mismatch", 0, 0},
		"completed, past its retention":   {row{ends, ends, ", state = 2, payload = ''"}, careful, "claimed", 1, ahead + 1},
		"completed, expired, later clock": {row{lives, ends, ", state = 2, payload = ''"}, careful, "claimed", 1, ahead + 1},
		"unreadable":                      {row{ends, lives, ", version = 2"}, plain, "corrupt", 0, 0},
		"unreadable past its retention":   {row{ends, ends, ", version = 2"}, plain, "corrupt", 0, 0},
	} {
		err := pgx.BeginFunc(context.WithoutCancel(ctx), f.Pool, func(tx pgx.Tx) error {
			change := "attempt = 3, fence = $2, lease_until = " + test.row.lease + ", valid_until = " + test.row.valid + test.row.more
			if _, err := tx.Exec(ctx, f.pgDamage(change), first.ID[:], int64(ahead)); err != nil {
				return err
			}
			var (
				verdict        string
				attempt, fence *int64
				left           *int64
			)
			c := &test.claim
			err := tx.QueryRow(ctx, "SELECT verdict, attempt, fence, lease_left FROM "+f.name("reprise_records_claim_v1")+"($1, $2, $3, $4, $5, 60000000, 60000000, 0, '', false)",
				c.ID[:], c.Owner[:], c.Fingerprint[:], c.Takeover, c.MaxAttempts).Scan(&verdict, &attempt, &fence, &left)
			if err != nil {
				return err
			}
			if verdict != test.verdict || verdict == "claimed" && (*attempt != int64(test.attempt) || *fence != test.fence) {
				t.Errorf("%s: %s, attempt %d, fence %d; want %s, attempt %d, fence %d", name, verdict, *attempt, *fence, test.verdict, test.attempt, test.fence)
			}
			if verdict != "claimed" && (*attempt != 3 || *fence != ahead) {
				t.Errorf("%s: attempt %d with fence %d, want those of the record", name, *attempt, *fence)
			}
			least, most := int64(0), int64(0) // of the lease, in µs
			switch {
			case verdict == "claimed":
				least, most = 1, 60_000_000
			case test.row.lease == lives:
				least, most = 1, 1
			}
			if *left < least || *left > most {
				t.Errorf("%s: %d µs of the lease are left, want %d to %d", name, *left, least, most)
			}
			return errUndo
		})
		if !errors.Is(err, errUndo) {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
