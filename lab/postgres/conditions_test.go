package postgres

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresConditionsOfWrites: which of all possible records each write statement
// changes: the visible attempts of the calling owner, the records that an operator read,
// the expired ones. No statement changes an unreadable record, or one of another ID. A
// lease or validity that has ended when a statement begins is over, even if its
// transaction began before.
func TestPostgresConditionsOfWrites(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(3), statements.option)
	texts := f.statements(t, statements)
	ctx := t.Context()
	attempt := func(r pgRow) bool { return !r.completed && r.own && (r.leased || r.valid) }
	seenLapsed := func(r pgRow) bool { return !r.completed && r.fence && !r.leased && r.valid }
	owner := []byte(pgOwner)
	ofOwner := func(more ...any) func(id []byte) []any {
		return func(id []byte) []any { return append([]any{id, owner}, more...) }
	}
	ofFence := func(more ...any) func(id []byte) []any {
		return func(id []byte) []any { return append([]any{id, int64(5)}, more...) }
	}
	const hour = int64(time.Hour / time.Microsecond)
	complete := strings.Replace(texts["complete in a transaction"], "1 / count(*)", "count(*)", 1) // that would end the transaction
	// The fence of a row that cannot be read is the transaction that wrote it: this one.
	ofThis := strings.Replace(texts["forget"], "$2::bigint", "($2::bigint - 5 + pg_current_xact_id()::text::bigint)", 1)
	// The lease that was seen is that of the rows with a live one.
	rewrite := strings.Replace(texts["rewrite"], "$15::timestamptz", "coalesce($15::timestamptz, now() + interval '1 hour')", 1)
	anyLease := strings.Replace(texts["rewrite"], "$15::timestamptz", "coalesce($15::timestamptz, r.lease_until)", 1)
	sawAttempt := func(another bool, attempt, state int) func(id []byte) []any {
		return func(id []byte) []any {
			return []any{id, []byte("the next owner.."), id, int64(1), time.Minute, hour, int64(0), "l", false, "", attempt, another, int64(5), state, nil, owner}
		}
	}
	same := func(completed bool) func(r pgRow) bool {
		return func(r pgRow) bool { return r.completed == completed && r.own && r.fence && r.leased }
	}
	for name, test := range map[string]struct {
		statement string
		args      func(id []byte) []any
		writes    func(r pgRow) bool
		damaged   func(r pgRow) bool // of those that cannot be read; nil: none
	}{
		"complete":                 {texts["complete"], ofOwner([]byte("x"), hour, int64(0)), attempt, nil},
		"complete again":           {texts["complete again"], ofOwner([]byte(pgOwner)), func(r pgRow) bool { return r.own }, nil},
		"claim of what was seen":   {rewrite, sawAttempt(true, 1, 1), same(false), nil},
		"claim of an ended record": {rewrite, sawAttempt(true, 1, 2), same(true), nil},
		"takeover":                 {anyLease, sawAttempt(true, 7, 1), func(r pgRow) bool { return !r.completed && r.own && r.fence && r.valid }, nil},
		"claim again":              {rewrite, sawAttempt(false, 7, 1), same(false), nil},
		"claim again in time":      {anyLease, sawAttempt(false, 7, 1), same(false), nil},
		"complete in a batch": {
			"SELECT " + f.name("reprise_records_completes_v1") + "(array[$1::bytea], array[$2::bytea], array[''::bytea], array[3600000000], array[0])", ofOwner(), attempt, nil,
		},
		"renew":                     {texts["renew"], func(id []byte) []any { return []any{[][]byte{id}, [][]byte{owner}, []int64{1000}} }, func(r pgRow) bool { return !r.completed && r.own }, nil},
		"release":                   {texts["release"], ofOwner(), func(r pgRow) bool { return !r.completed && r.own }, nil},
		"resolve":                   {texts["resolve"], ofFence([]byte("x"), int64(1000), false), seenLapsed, nil},
		"forget":                    {texts["forget"], ofFence(false, false), seenLapsed, nil},
		"forget a result":           {texts["forget"], ofFence(true, false), func(r pgRow) bool { return r.completed && r.fence && r.valid }, nil},
		"forget the unreadable":     {ofThis, ofFence(nil, false), func(pgRow) bool { return false }, func(pgRow) bool { return true }},
		"forget another of them":    {texts["forget"], ofFence(nil, false), func(pgRow) bool { return false }, nil},
		"complete in a transaction": {complete, ofOwner([]byte("x"), hour, int64(0)), attempt, nil},
		"whole lease":               {texts["whole lease"], ofOwner(int64(1000), int64(1000)), attempt, nil},
	} {
		rows, asked := make(map[store.ID]pgRow), make(map[store.ID]bool)
		for _, r := range pgRows() { // each twice; one of them is another operation's
			rows[pgClaim().ID] = r
			id := pgClaim().ID
			rows[id], asked[id] = r, true
		}
		f.pgUndone(t, name, func(tx pgx.Tx) error {
			if err := f.putRows(ctx, tx, rows, "clock_timestamp()", "now() + interval '1 hour'"); err != nil {
				return err
			}
			before, err := f.places(ctx, tx)
			if err != nil {
				return err
			}
			batch := &pgx.Batch{}
			for id := range asked {
				batch.Queue(test.statement, test.args(id[:])...)
			}
			if err := tx.SendBatch(ctx, batch).Close(); err != nil {
				return err
			}
			after, err := f.places(ctx, tx)
			if err != nil {
				return err
			}
			for id, r := range rows {
				want := asked[id] && (r.damage == "" && test.writes(r) || r.damage != "" && test.damaged != nil && test.damaged(r))
				if got := before[id] != after[id]; got != want {
					t.Errorf("%s: asked %t, written %t, want %t: %v", name, asked[id], got, want, r)
				}
			}
			return nil
		})
	}
}

// TestPostgresConditionsOfReads: which of all possible records the purge deletes, and the
// state that an operator sees, at the instants where it changes: at the end is over.
func TestPostgresConditionsOfReads(t *testing.T) {
	t.Parallel()
	statements := &pgStatements{}
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(3), statements.option)
	texts := f.statements(t, statements)
	ctx := t.Context()
	f.pgUndone(t, "reads", func(tx pgx.Tx) error {
		rows := make(map[store.ID]pgRow)
		var ids, owners [][]byte
		var leases []int64
		for _, r := range pgRows() {
			id := pgClaim().ID
			rows[id] = r
			ids, owners, leases = append(ids, id[:]), append(owners, []byte(pgOwner)), append(leases, 1000)
		}
		if err := f.putRows(ctx, tx, rows, "now()", "now() + interval '1 microsecond'"); err != nil {
			return err
		}
		which := func(selects func(r pgRow) bool) []string {
			var list []string
			for id, r := range rows {
				if selects(r) {
					list = append(list, hex.EncodeToString(id[:]))
				}
			}
			slices.Sort(list)
			return list
		}
		query := func(what, column string, args ...any) (list []string, all []map[string]any, err error) {
			found, err := tx.Query(ctx, texts[what], args...)
			if err != nil {
				return nil, nil, err
			}
			if all, err = pgx.CollectRows(found, pgx.RowToMap); err != nil {
				return nil, nil, err
			}
			for _, row := range all {
				if row[column] == nil { // a listing answers one row at least
					continue
				}
				list = append(list, fmt.Sprintf("%x", row[column]))
			}
			slices.Sort(list)
			return list, all, nil
		}
		running := func(r pgRow) bool { return !r.completed && r.leased }
		for what, test := range map[string]struct {
			states int
			want   func(r pgRow) bool
		}{
			"running":    {1 << 1, func(r pgRow) bool { return r.damage == "" && running(r) }},
			"lapsed":     {1 << 2, func(r pgRow) bool { return r.damage == "" && !r.completed && !r.leased && r.valid }},
			"completed":  {1 << 3, func(r pgRow) bool { return r.damage == "" && r.completed && r.valid }},
			"expired":    {1 << 4, func(pgRow) bool { return false }},
			"unreadable": {1 << 5, func(r pgRow) bool { return r.damage != "" }},
		} {
			want := which(test.want)
			if got, _, err := query("list", "id", []byte{}, test.states, "", int64(0), int64(1000)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d records are listed as %s, %v; want %d", len(got), what, err, len(want))
			}
		}
		const columns = "version, attempt, state, payload, owner, fence, lease_until, valid_until, expires_at, created_at, fingerprint"
		for _, change := range []string{
			"UPDATE " + f.records() + " SET label = CASE WHEN owner = '" + pgOwner + "' THEN 'l' ELSE 'll' END, created_at = now() + interval '1 second'",
			// no ID has this length
			"INSERT INTO " + f.records() + " (" + columns + ", id) SELECT " + columns + ", substr(id, 1, 31) FROM " + f.records() + " WHERE valid_until > now() LIMIT 1",
		} {
			if _, err := tx.Exec(ctx, change); err != nil {
				return err
			}
		}
		const allStates = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5
		listed := func(r pgRow) bool { return r.damage != "" || running(r) || r.valid }
		for what, test := range map[string]struct {
			label string
			want  func(r pgRow) bool
		}{
			"all":        {"", listed},
			"of a label": {"l", func(r pgRow) bool { return r.damage == "" && r.own && listed(r) }},
		} {
			want := which(test.want)
			if got, _, err := query("list", "id", []byte{}, allStates, test.label, int64(0), int64(1000)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d records are listed, %s, %v; want %d", len(got), what, err, len(want))
			}
		}
		old := "UPDATE " + f.records() + " SET created_at = now() - interval '1 hour' + interval '1 microsecond' * (state - 1)"
		if _, err := tx.Exec(ctx, old+"; DELETE FROM "+f.records()+" WHERE octet_length(id) < 32", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		want := which(func(r pgRow) bool { return r.damage != "" || listed(r) && !r.completed })
		if got, _, err := query("list", "id", []byte{}, allStates, "", time.Hour.Microseconds(), int64(1000)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d records are listed as an hour old, %v; want %d", len(got), err, len(want))
		}

		_, statuses, err := query("renew", "case", ids, owners, leases)
		if err != nil {
			return err
		}
		for i, id := range ids {
			r := rows[store.ID(id)]
			want := "lost" // also where it ended after the transaction began: the clock is read with the row held
			if r.damage == "" && r.own && r.completed && r.valid {
				want = "completed"
			}
			if got := statuses[i]["case"]; got != want {
				t.Errorf("a renewal answers %v, want %s: %v", got, want, r)
			}
		}

		over := which(func(r pgRow) bool { return r.fence && !r.valid && !strings.Contains(r.damage, "state") && !running(r) })
		var purgeable, purged int
		// Of some the room for the purge is not over.
		if _, err := tx.Exec(ctx, "UPDATE "+f.records()+" SET expires_at = now() + interval '1 microsecond' WHERE fence = 6"); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, texts["purgeable"], int64(1000)).Scan(&purgeable); err != nil {
			return err
		}
		var now time.Time
		if err := tx.QueryRow(ctx, "SELECT now()").Scan(&now); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE "+f.records()+" SET expires_at = expires_at - interval '1 microsecond' WHERE state = 2 AND fence = 5"); err != nil {
			return err
		}
		earliest := now.Add(-time.Microsecond)
		for _, step := range []struct {
			limit      int64
			from, last time.Time
			all        bool
		}{{1000, now.Add(time.Microsecond), time.Time{}, false}, {1, earliest, earliest, false}, {1000, earliest, now, true}} {
			var n int
			var last *time.Time
			if err := tx.QueryRow(ctx, texts["purge"], step.limit, step.from, nil).Scan(&n, &last); err != nil {
				return err
			}
			purged += n
			if n > 0 != (last != nil) || n > 0 && !last.Equal(step.last) || int64(n) > step.limit || step.all != (n > 1) {
				t.Errorf("at %v a purge that begins at %v deleted %d records up to %v, want %v", now, step.from, n, last, step.last)
			}
		}
		var more int
		if err := tx.QueryRow(ctx, texts["purgeable"], int64(1000)).Scan(&more); err != nil || more != 0 {
			t.Errorf("after the purge %d records can be purged (%v)", more, err)
		}
		left, err := f.places(ctx, tx)
		if err != nil {
			return err
		}
		for id := range maps.Keys(left) {
			delete(rows, id)
		}
		gone := which(func(r pgRow) bool { return !strings.Contains(r.damage, "state") })
		if !slices.Equal(gone, over) || purged != purgeable {
			t.Errorf("of %d records that nobody sees %d were purged; %d were counted and %d deleted", len(over), len(gone), purgeable, purged)
		}
		return nil
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
	pgWant(t, "acquire", err, nil)
	defer conn.Release()
	show := func() (value string) {
		pgWant(t, "show", conn.QueryRow(t.Context(), "SHOW lock_timeout").Scan(&value), nil)
		return value
	}
	for own, want := range map[string]string{"0": "2s", "150ms": "150ms", "2s": "2s", "1min": "2s"} {
		_, err := conn.Exec(t.Context(), "SET lock_timeout = '"+own+"'")
		pgWant(t, "set", err, nil)
		err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), limit, "2000ms")
			if got := show(); got != want {
				t.Errorf("a session with %s waits %s, want %s", own, got, want)
			}
			return err
		})
		pgWant(t, "look", err, nil)
		if got := show(); got != own {
			t.Errorf("a session with %s has %s afterwards", own, got)
		}
	}
	_, err = conn.Exec(t.Context(), "RESET lock_timeout")
	pgWant(t, "reset", err, nil)
}
