package edges_test

import (
	"context"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"

	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestEffectsCommitWithTheMessage calls a handler that writes in the transaction of its
// attempt: a message commits its rows, an error rolls them back and is replayed as well.
func TestEffectsCommitWithTheMessage(t *testing.T) {
	t.Parallel()
	for _, target := range []target{overGRPC, connectTarget("Connect", false)} {
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			e := &env{T: t, target: target}
			pg := labtest.SetupPostgres(t, servers.SharedPostgres(t))
			table := pg.Config.Schema + ".orders"
			if _, err := pg.Pool.Exec(t.Context(), "CREATE TABLE "+table+" (item text)"); err != nil {
				t.Fatal(err)
			}
			s := e.serve(setup{store: pg.Leased(t), Config: protocol.Config{Transactional: true}, handler: func(ctx context.Context, in *request) outcome {
				item := in.GetFields()["item"].GetStringValue()
				tx, err := reprisepg.Tx(ctx)
				if err != nil {
					return outcome{code: internal, message: err.Error()}
				}
				if _, err := tx.Exec(ctx, "INSERT INTO "+table+" VALUES ($1)", item); err != nil {
					return outcome{code: internal, message: err.Error()}
				}
				if item == "sold out" {
					return outcome{code: failedPrecondition, message: item}
				}
				return outcome{body: []byte(item)}
			}})
			e.twice(s, call{keys: []string{"a"}, in: "book"})
			e.twice(s, call{keys: []string{"b"}, in: "sold out"})
			var items string
			if err := pg.Pool.QueryRow(t.Context(), "SELECT string_agg(item, ',') FROM "+table).Scan(&items); err != nil || items != "book" {
				t.Errorf("the orders are %q (%v), want the one that succeeded", items, err)
			}
		})
	}
}
