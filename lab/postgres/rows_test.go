package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgRow is a row that a statement meets.
type pgRow struct {
	completed, own, fence, leased, valid, replayed bool // whose owner and whose fence it has, and which of its times live
	damage                                         string
}

func (r pgRow) String() string {
	return fmt.Sprintf("completed %t, own %t, own fence %t, lease lives %t, valid %t, replayed %t, %s", r.completed, r.own, r.fence, r.leased, r.valid, r.replayed, r.damage)
}

// pgDamages are the ways in which a row cannot be read. A row in progress has no payload.
var pgDamages = []string{
	"version = 2", "version = 0", "state = 1, payload = ''", "state = 7, payload = NULL", "state = 0",
	"owner = substr(owner, 1, 15)", "owner = owner || 'x'", "fingerprint = substr(fingerprint, 1, 31)", "fingerprint = fingerprint || 'x'",
}

// pgRows are all combinations, and the damaged ones of the owner.
func pgRows() []pgRow {
	var list []pgRow
	for i := range 64 {
		is := func(bit int) bool { return i&bit != 0 }
		r := pgRow{completed: is(1), leased: is(2), valid: is(4), own: !is(8), fence: !is(16), replayed: is(32)}
		list = append(list, r)
		if r.own && r.fence {
			for _, damage := range pgDamages {
				r.damage = damage
				list = append(list, r)
			}
		}
	}
	return list
}

// values are those of a row for an INSERT. Ended and lives are instants in the past and
// in the future.
func (r pgRow) values(id store.ID, ended, lives string) string {
	at := func(live bool) string {
		if live {
			return lives
		}
		return ended
	}
	state, payload, owner, fence := 1, "NULL::bytea", "of somebody else", 6
	if r.completed {
		state, payload = 2, "''"
	}
	if r.own {
		owner = pgOwner
	}
	if r.fence {
		fence = 5
	}
	return fmt.Sprintf(`('\x%x'::bytea, %d, %s, '%s'::bytea, %d, %s, %s, %s, %s)`, id[:], state, payload, owner, fence, at(r.leased), at(r.replayed), at(r.valid), ended)
}

// putRows replaces all records by rows.
func (f *pgFixture) putRows(t *testing.T, tx pgx.Tx, rows map[store.ID]pgRow, ended, lives string) {
	t.Helper()
	var values []string
	damaged := make(map[string][][]byte)
	for id, r := range rows {
		values = append(values, r.values(id, ended, lives))
		if r.damage != "" {
			damaged[r.damage] = append(damaged[r.damage], id[:])
		}
	}
	batch := &pgx.Batch{}
	batch.Queue("DELETE FROM " + f.records())
	batch.Queue(f.pgInsert("(VALUES "+strings.Join(values, ",")+") AS v (id, state, payload, owner, fence, lease_until, replay_until, valid_until, due_at)", map[string]string{
		"state": "state", "payload": "payload", "owner": "owner", "fence": "fence", "fingerprint": "sha256('f')",
		"lease_until": "lease_until", "replay_until": "replay_until", "valid_until": "valid_until", "due_at": "due_at",
	}))
	for damage, ids := range damaged {
		batch.Queue("UPDATE "+f.records()+" SET "+damage+" WHERE id = ANY ($1)", ids)
	}
	labtest.Must(t, tx.SendBatch(t.Context(), batch).Close())
}

// pgOwner is the owner that asks.
const pgOwner = "the asking owner"

// places returns where the rows are. A row that is written has another place, or none.
func (f *pgFixture) places(t *testing.T, tx pgx.Tx) map[store.ID]string {
	t.Helper()
	rows, err := tx.Query(t.Context(), "SELECT id, ctid::text FROM "+f.records())
	labtest.Must(t, err)
	places := make(map[store.ID]string)
	var (
		id    []byte
		place string
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &place}, func() error {
		places[store.ID(id)] = place
		return nil
	})
	labtest.Must(t, err)
	return places
}

// statements makes a store send the statements that are PostgreSQL's own, and returns the
// texts.
func (f *pgFixture) statements(t *testing.T, traced *pgStatements) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	st := f.Leased(t)
	ctx := t.Context()
	r := labtest.Claimed(t, st)
	texts["claim"] = traced.last(t)
	labtest.WantClaim(t, st, labtest.Rival(r), store.InProgress)
	texts["look"] = traced.last(t)
	_, err := st.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
	labtest.Must(t, err)
	texts["renew"] = traced.last(t)
	labtest.Must(t, labtest.Complete(t, st, r, pgBody))
	texts["complete"] = traced.last(t)
	_, err = st.Purge(ctx, 10)
	labtest.Must(t, err)
	texts["purge"] = traced.last(t)

	server := servers.SharedPostgres(t)
	proxy := servers.StartProxy(t, server.Addr())
	cut := pgOn(labtest.NewPool(t, proxy.URL(server.URL()), labtest.ExecMode(pgx.QueryExecModeExec), traced.option), f.Config).Transactional(t)
	lost := labtest.Claimed(t, cut)
	pgTx(t, cut, lost)
	proxy.On("COMMIT", servers.LoseReply)
	labtest.Must(t, labtest.Complete(t, cut, lost, pgBody))
	texts["complete in a transaction"] = traced.find(t, "1 / count(*)")
	texts["limit of the look"] = traced.find(t, "set_config('lock_timeout'")
	texts["again"] = traced.find(t, "THEN 2")
	texts["forget"] = traced.find(t, "decode(repeat('00', 16)")
	return texts
}

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
