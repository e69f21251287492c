package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresConditionsOfWrites: which of all possible records each statement changes
// that is PostgreSQL's own: the visible attempts of the calling owner. No statement
// changes an unreadable record, or one of another ID. A lease or validity that has ended
// when a statement begins is over, even if its transaction began before.
func TestPostgresConditionsOfWrites(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(3), statements.option)
	texts := f.statements(t, statements)
	attempt := func(r pgRow) bool { return !r.completed && r.own && (r.leased || r.valid) }
	running := func(r pgRow) bool { return !r.completed && r.own }
	owner := []byte(pgOwner)
	ofOwner := func(more ...any) func(id []byte) []any {
		return func(id []byte) []any { return append([]any{id, owner}, more...) }
	}
	const hour = int64(time.Hour / time.Microsecond)
	complete := strings.Replace(texts["complete in a transaction"], "1 / count(*)", "count(*)", 1) // that would end the transaction
	for name, test := range map[string]struct {
		statement string
		args      func(id []byte) []any
		writes    func(r pgRow) bool
	}{
		"complete": {texts["complete"], ofOwner([]byte("x"), hour, int64(0)), attempt},
		"complete in a batch": {
			"SELECT " + f.name("reprise_records_completes_v1") + "(array[$1::bytea], array[$2::bytea], array[''::bytea], array[3600000000], array[0::bigint])", ofOwner(), attempt,
		},
		"complete in a transaction": {complete, ofOwner([]byte("x"), hour, int64(0)), attempt},
		"renew":                     {texts["renew"], func(id []byte) []any { return []any{[][]byte{id}, [][]byte{owner}, []int64{1000}} }, running},
		"again":                     {texts["again"], ofOwner(), func(r pgRow) bool { return r.own }},
		"forget":                    {texts["forget"], ofOwner(), running},
	} {
		rows, asked := make(map[store.ID]pgRow), make(map[store.ID]bool)
		for _, r := range pgRows() { // each twice; one of them is another operation's
			rows[labtest.NewClaim().ID] = r
			id := labtest.NewClaim().ID
			rows[id], asked[id] = r, true
		}
		f.pgUndone(t, func(tx pgx.Tx) {
			f.putRows(t, tx, rows, pgLate, pgNow+" + "+pgHour)
			before := f.places(t, tx)
			batch := &pgx.Batch{}
			for id := range asked {
				batch.Queue(test.statement, test.args(id[:])...)
			}
			labtest.Must(t, tx.SendBatch(t.Context(), batch).Close())
			after := f.places(t, tx)
			for id, r := range rows {
				want := asked[id] && r.damage == "" && test.writes(r)
				if got := before[id] != after[id]; got != want {
					t.Errorf("%s: asked %t, written %t, want %t: %v", name, asked[id], got, want, r)
				}
			}
		})
	}
}

// TestPostgresConditionsOfUpkeep: which of all possible records the purge deletes and
// empties, and what a renewal answers, at the instants where it changes: at the end is
// over.
func TestPostgresConditionsOfUpkeep(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(3), statements.option)
	texts := f.statements(t, statements)
	f.pgUndone(t, func(tx pgx.Tx) {
		rows := make(map[store.ID]pgRow)
		var ids, owners [][]byte
		var leases []int64
		for _, r := range pgRows() {
			id := labtest.NewClaim().ID
			rows[id] = r
			ids, owners, leases = append(ids, id[:]), append(owners, []byte(pgOwner)), append(leases, 1000)
		}
		f.putRows(t, tx, rows, pgNow, pgNow+" + 1")
		answers, err := tx.Query(t.Context(), texts["renew"], ids, owners, leases)
		labtest.Must(t, err)
		statuses, err := pgx.CollectRows(answers, pgx.RowTo[string])
		labtest.Must(t, err)
		for i, id := range ids {
			r := rows[store.ID(id)]
			want := "lost" // also where it ended after the transaction began: the clock is read with the row held
			if r.damage == "" && r.own && r.completed && r.valid {
				want = "completed"
			}
			if statuses[i] != want {
				t.Errorf("a renewal answers %v, want %s: %v", statuses[i], want, r)
			}
		}

		// Of some the time for the purge has not come, and of others it came before.
		for _, change := range []string{"due_at + 1 WHERE fence = 6", "due_at - 1 WHERE state = 2 AND fence = 5"} {
			pgExec(t, tx, "UPDATE "+f.records()+" SET due_at = "+change)
		}
		before := f.places(t, tx)
		now := pgValue[int64](t, tx, "SELECT "+pgNow)
		purged := 0
		for _, step := range []struct {
			limit, from, last int64
			all               bool
		}{{1000, now + 1, 0, false}, {1, now - 1, now - 1, false}, {1000, now - 1, now, true}, {1000, 0, 0, false}} {
			var n int
			var last int64
			labtest.Must(t, tx.QueryRow(t.Context(), texts["purge"], step.limit, step.from).Scan(&n, &last))
			purged += n
			if last != step.last || int64(n) > step.limit || step.all != (n > 1) {
				t.Errorf("at %d a purge that begins at %d changed %d records up to %d, want %d", now, step.from, n, last, step.last)
			}
		}
		after := f.places(t, tx)
		changed := 0
		for id, r := range rows {
			running := !r.completed && r.damage != "state = 7, payload = NULL" && r.damage != "state = 0" || r.damage == "state = 1, payload = ''"
			version := !strings.Contains(r.damage, "version")
			deleted := r.fence && !r.valid && (!running || !r.leased)
			emptied := r.fence && r.valid && version && r.completed && !strings.Contains(r.damage, "state") && !r.replayed
			place, there := after[id]
			if there == deleted || there && (place != before[id]) != emptied {
				t.Errorf("deleted %t, written %t; want %t, %t: %v", !there, place != before[id], deleted, emptied, r)
			}
			if deleted || emptied {
				changed++
			}
		}
		if purged != changed {
			t.Errorf("%d records were counted, and %d changed", purged, changed)
		}
	})
}

// TestPostgresLimitOfTheLook: the look for a lost COMMIT waits for the record as
// long as its caller does, or shorter where the session says so, and leaves the session
// as it was.
func TestPostgresLimitOfTheLook(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(3), statements.option)
	limit := f.statements(t, statements)["limit of the look"]
	conn, err := f.Pool.Acquire(t.Context())
	labtest.Must(t, err)
	defer conn.Release()
	show := func() (value string) {
		labtest.Must(t, conn.QueryRow(t.Context(), "SHOW lock_timeout").Scan(&value))
		return value
	}
	for own, want := range map[string]string{"0": "2s", "150ms": "150ms", "2s": "2s", "1min": "2s"} {
		pgExec(t, conn, "SET lock_timeout = '"+own+"'")
		err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), limit, "2000ms")
			if got := show(); got != want {
				t.Errorf("a session with %s waits %s, want %s", own, got, want)
			}
			return err
		})
		labtest.Must(t, err)
		if got := show(); got != own {
			t.Errorf("a session with %s has %s afterwards", own, got)
		}
	}
	pgExec(t, conn, "RESET lock_timeout")
}
