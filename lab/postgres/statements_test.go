package postgres

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// find returns the last statement with a text in it.
func (s *pgStatements) find(t *testing.T, part string) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, statement := range slices.Backward(s.seen) {
		if strings.Contains(statement, part) {
			return statement
		}
	}
	t.Fatalf("no statement with %q was traced", part)
	return ""
}

// pgUndone calls f in a transaction that is then undone.
func (f *pgFixture) pgUndone(t *testing.T, call func(tx pgx.Tx)) {
	t.Helper()
	tx, err := f.Pool.Begin(t.Context())
	labtest.Must(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	call(tx)
}

// TestPostgresLooksHaveAnEarlyClock: the look of a claim and a batch of claims answer a
// record with the clock at which their transaction began, which is before their snapshot:
// by a later one a lease that was renewed in between would have lapsed. They answer the
// payload until replay_until, and not at it. In a transaction now() stands still, so that
// it can be met.
func TestPostgresLooksHaveAnEarlyClock(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), statements.option)
	r := labtest.Completed(t, f.Leased(t), pgBody)
	labtest.WantClaim(t, f.Leased(t), labtest.Rival(r), store.Completed)
	const batch = "(array[$1::bytea], array[''::bytea], array[''::bytea], array[1], array[1], array[0], array[''], array[0]::smallint[], array[''], true)"
	for text, clock := range map[string]int{
		statements.find(t, "NOT pg_is_in_recovery()"):                                                                0,
		"SELECT * FROM " + f.name("reprise_records_claims_v1") + batch:                                               9,
		"SELECT DISTINCT * FROM " + f.name("reprise_records_claims_v1") + strings.Replace(batch, "true", "false", 1): 9,
	} {
		for end, replayed := range map[string]bool{pgNow: false, pgNow + " + 1": true} {
			f.pgUndone(t, func(tx pgx.Tx) {
				pgExec(t, tx, f.pgDamage("replay_until = "+end), r.ID[:])
				began := pgValue[int64](t, tx, "SELECT "+pgNow)
				rows, err := tx.Query(t.Context(), text, r.ID[:])
				labtest.Must(t, err)
				defer rows.Close()
				rows.Next()
				values, err := rows.Values()
				if err != nil || (values[len(values)-1] != nil) != replayed || values[clock] != began {
					t.Errorf("%s, of a replay that ends at %s, in a transaction that began at %d: %v, %v", text, end, began, values, err)
				}
			})
		}
	}
}

// TestPostgresConditionsOfCompletions: a batch of completions, and a completion in the
// transaction of a handler, write attempts of the calling owner that are seen, and no
// other record, such as one that this release cannot read.
func TestPostgresConditionsOfCompletions(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), statements.option)
	st := f.Transactional(t)
	r := labtest.Claimed(t, st)
	pgTx(t, st, r)
	labtest.Must(t, labtest.Complete(t, st, r, pgBody))
	inTx := strings.Replace(statements.find(t, "1 / count(*)"), "1 / count(*)", "count(*)", 1) // that would end the transaction
	f.exec(t, f.pgDamage("state = 1, payload = NULL, lease_until = "+pgInAnHour), r.ID[:])
	for change, want := range map[string]int{
		"fence = fence":             1,
		"valid_until = " + pgNow:    1, // the lease outlives it
		pgLapsed:                    1,
		pgEnded:                     0,
		"owner = substr(id, 1, 16)": 0,
		"state = 2, payload = ''":   0,
		"version = 2":               0,
		"payload = ''":              0,
		"state = 0":                 0,
		"fingerprint = substr(fingerprint, 1, 31)": 0,
	} {
		for _, text := range []string{
			inTx, "SELECT count(*) FROM " + f.name("reprise_records_completes_v1") + "(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[$4::bigint], array[$5::bigint])",
		} {
			f.pgUndone(t, func(tx pgx.Tx) {
				pgExec(t, tx, f.pgDamage(change), r.ID[:])
				if n := pgValue[int](t, tx, text, r.ID[:], r.Owner[:], []byte("x"), int64(3_600_000_000), int64(0)); n != want {
					t.Errorf("%d records of one with %s were completed, want %d: %s", n, change, want, text)
				}
			})
		}
	}
}

// TestPostgresBatchesWriteTheirArguments: a batch of claims and one of completions write
// each value that they are given, and instants that count from the clock at which they
// write. The purge has an hour more at a claim, and the replay ends before the record.
func TestPostgresBatchesWriteTheirArguments(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	r := labtest.NewClaim()
	const lease, retention, horizon, hour = 7_000_000, 3 * hours, 2 * hours, hours
	f.pgUndone(t, func(tx pgx.Tx) {
		written := func(values []any, instants map[string]int64, statement string, args ...any) {
			t.Helper()
			from := pgValue[int64](t, tx, "SELECT "+pgLate)
			pgExec(t, tx, statement, args...)
			to := pgValue[int64](t, tx, "SELECT "+pgLate)
			rows, err := tx.Query(t.Context(), "SELECT label, description, retention, horizon, at_most_once, payload FROM "+f.records()+" WHERE id = $1", r.ID[:])
			labtest.Must(t, err)
			if got, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() }); err != nil || !reflect.DeepEqual(got, values) {
				t.Errorf("%.80s wrote %v, %v, want %v", statement, got, err, values)
			}
			for column, after := range instants {
				if at := pgValue[int64](t, tx, "SELECT "+column+" FROM "+f.records()+" WHERE id = $1", r.ID[:]); at < from+after || at > to+after {
					t.Errorf("%.80s wrote %s %d µs after it began, want %d", statement, column, at-from, after)
				}
			}
		}
		written([]any{"label", "described", int64(retention), int64(horizon), int16(1), nil},
			map[string]int64{"claimed_at": 0, "lease_until": lease, "valid_until": retention + horizon, "due_at": retention + horizon + hour},
			"SELECT * FROM "+f.name("reprise_records_claims_v1")+"(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[$4::bigint], array[$5::bigint], "+
				"array[$6::bigint], array[$7::text], array[$8::smallint], array[$9::text], false)",
			r.ID[:], r.Owner[:], r.Fingerprint[:], int64(lease), int64(retention), int64(horizon), "label", int16(1), "described")
		written([]any{"label", "described", int64(retention), int64(horizon), int16(1), []byte("x")},
			map[string]int64{"lease_until": 0, "replay_until": retention, "valid_until": retention + horizon},
			"SELECT * FROM "+f.name("reprise_records_completes_v1")+"(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[$4::bigint], array[$5::bigint])",
			r.ID[:], r.Owner[:], []byte("x"), int64(retention), int64(horizon))
	})
}

// hours is an hour, in microseconds.
const hours = 3_600_000_000
