package postgres

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// pgPlan is a node of a plan that ran.
type pgPlan struct {
	Node   string   `json:"Node Type"`
	Rows   float64  `json:"Actual Rows"`
	Loops  float64  `json:"Actual Loops"`
	Filter float64  `json:"Rows Removed by Filter"`
	Joined float64  `json:"Rows Removed by Join Filter"`
	Inner  []pgPlan `json:"Plans"`
}

// work is the number of rows that the nodes of a plan returned or dropped.
func (p *pgPlan) work() float64 {
	sum := (p.Rows + p.Filter + p.Joined) * p.Loops
	for i := range p.Inner {
		sum += p.Inner[i].work()
	}
	return sum
}

// The work of a renewal grows with its leases, whatever the server knows of the table: it
// knows nothing of a new one.
func TestPostgresRenewalsLookAtTheirOwnRecords(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.StartPostgres(t, "autovacuum=off"))
	const records = 5000
	f.exec(t, f.pgInsert("(SELECT sha256(n::text::bytea) AS id FROM generate_series(1, $1::int) AS n) AS s",
		map[string]string{"state": "1", "payload": "NULL::bytea", "lease_until": pgInAnHour}), records)
	renewal := pgStatementOf(t, f, func(st *reprisepg.Store) error {
		_, err := st.Renew(t.Context(), []store.RenewRequest{{ID: store.ID{1}, Owner: store.NewOwner(), Lease: store.MaxDuration}})
		return err
	})
	for _, known := range []bool{false, true} {
		if known {
			f.exec(t, "ANALYZE "+f.records())
		}
		for _, leases := range []int{1, 100, 300, 1000, records} {
			const some = " (SELECT n FROM generate_series(1, $1::int) AS n) AS n"
			ids := pgValue[[][]byte](t, f.Pool, "SELECT array_agg(sha256(n::text::bytea)) FROM"+some, leases)
			owners := pgValue[[][]byte](t, f.Pool, "SELECT array_agg(substr(sha256(n::text::bytea), 1, 16)) FROM"+some, leases)
			durations := pgValue[[]int64](t, f.Pool, "SELECT array_agg(60000000) FROM"+some, leases)
			text := pgValue[string](t, f.Pool, "EXPLAIN (ANALYZE, FORMAT JSON) "+renewal, pgx.QueryExecModeExec, ids, owners, durations)
			var plans []struct{ Plan pgPlan }
			labtest.Must(t, json.Unmarshal([]byte(text), &plans))
			// A dozen nodes see each lease, and a scan of the whole table may be the cheapest for
			// many of them.
			work := plans[0].Plan.work()
			t.Logf("a renewal of %d leases of %d, analyzed %t, works on %.0f rows", leases, records, known, work)
			if work > float64(4*records+20*leases) {
				t.Error(text)
			}
		}
	}
}
