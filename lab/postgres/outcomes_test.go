package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// errUndo undoes a transaction of a test.
var errUndo = errors.New("undo")

// TestPostgresReplayEndsAtItsInstant: the look of a claim and a batch of claims answer
// the payload until replay_until, and not at it. In a transaction now() stands still, so
// that it can be met.
func TestPostgresReplayEndsAtItsInstant(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(4), statements.option)
	r := labtest.NewClaim()
	labtest.WantClaim(t, f.Leased(t), r, store.Claimed)
	labtest.Must(t, labtest.Complete(t, f.Leased(t), r, pgBody))
	labtest.WantClaim(t, f.Leased(t), labtest.Rival(r), store.Completed)
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
