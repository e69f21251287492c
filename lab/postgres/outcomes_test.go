package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresReplayEndsAtItsInstant: the look of a claim and a batch of claims answer
// the payload until replay_until, and not at it. In a transaction now() stands still, so
// that it can be met.
func TestPostgresReplayEndsAtItsInstant(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(4), statements.option)
	r := labtest.Completed(t, f.Leased(t), pgBody)
	labtest.WantClaim(t, f.Leased(t), labtest.Rival(r), store.Completed)
	look := statements.find(t, "NOT pg_is_in_recovery()")
	batch := "SELECT * FROM " + f.name("reprise_records_claims_v1") + "(array[$1::bytea], array[''::bytea], array[''::bytea], array[1], array[1], array[0], array[''], array[0]::smallint[], array[''], true)"
	for what, text := range map[string]string{"look": look, "batch": batch} {
		for end, replayed := range map[string]bool{pgNow: false, pgNow + " + 1": true} {
			f.pgUndone(t, func(tx pgx.Tx) {
				pgExec(t, tx, f.pgDamage("replay_until = "+end), r.ID[:])
				rows, err := tx.Query(t.Context(), text, r.ID[:])
				labtest.Must(t, err)
				defer rows.Close()
				rows.Next()
				values, err := rows.Values()
				if err != nil || (values[len(values)-1] != nil) != replayed {
					t.Errorf("%s: a replay that ends at %s has the payload %v, %v", what, end, values, err)
				}
			})
		}
	}
}
