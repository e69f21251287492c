package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgRow is a row that a statement meets.
type pgRow struct {
	completed, own, fence, leased, valid bool // whose owner and whose fence it has, and which of its times live
	damage                               string
}

func (r pgRow) String() string {
	return fmt.Sprintf("completed %t, own %t, own fence %t, lease lives %t, valid %t, %s", r.completed, r.own, r.fence, r.leased, r.valid, r.damage)
}

// pgDamages are the ways in which a row cannot be read. A row in progress has no payload.
var pgDamages = []string{
	"version = 2", "version = 0", "state = 1, payload = ''", "state = 7, payload = NULL", "state = 0",
	"owner = substr(owner, 1, 15)", "owner = owner || 'x'", "fingerprint = substr(fingerprint, 1, 31)", "fingerprint = fingerprint || 'x'",
}

// pgRows are all combinations, and the damaged ones of the owner.
func pgRows() []pgRow {
	var list []pgRow
	for i := range 32 {
		is := func(bit int) bool { return i&bit != 0 }
		r := pgRow{completed: is(1), leased: is(2), valid: is(4), own: !is(8), fence: !is(16)}
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
	expires := ended
	if r.completed {
		state, payload = 2, "''"
		if r.valid {
			expires = lives + " + interval '1 microsecond'" // no horizon follows
		}
	}
	if r.own {
		owner = pgOwner
	}
	if r.fence {
		fence = 5
	}
	return fmt.Sprintf(`(1, 1, %d, %s, '%s'::bytea, %d, %s, %s, %s, now() - interval '1 hour', '\x%x'::bytea, sha256('f'))`,
		state, payload, owner, fence, at(r.leased), at(r.valid), expires, id[:])
}

// putRows replaces all records by rows.
func (f *pgFixture) putRows(ctx context.Context, tx pgx.Tx, rows map[store.ID]pgRow, ended, lives string) error {
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
	batch.Queue("INSERT INTO " + f.records() + " (version, attempt, state, payload, owner, fence, lease_until, valid_until, expires_at, created_at, id, fingerprint) VALUES " +
		strings.Join(values, ","))
	for damage, ids := range damaged {
		batch.Queue("UPDATE "+f.records()+" SET "+damage+" WHERE id = ANY ($1)", ids)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// pgOwner is the owner that asks.
const pgOwner = "the asking owner"

// places returns where the rows are. A row that is written has another place, or none.
func (f *pgFixture) places(ctx context.Context, tx pgx.Tx) (map[store.ID]string, error) {
	rows, err := tx.Query(ctx, "SELECT id, ctid::text FROM "+f.records())
	if err != nil {
		return nil, err
	}
	places := make(map[store.ID]string)
	var (
		id    []byte
		place string
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &place}, func() error {
		places[store.ID(id)] = place
		return nil
	})
	return places, err
}

// statements makes a store send every statement that changes records, and returns the
// texts.
func (f *pgFixture) statements(t *testing.T, traced *pgStatements) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	st := f.Leased(t)
	ctx := t.Context()
	lapse := func(r store.ClaimRequest) uint64 {
		granted := pgMustClaim(t, st, r, store.Claimed)
		f.exec(t, f.pgDamage("lease_until = now()"), r.ID[:])
		return granted.Fence
	}
	r := pgClaim()
	pgMustClaim(t, st, r, store.Claimed)
	texts["claim"] = traced.find(t, "INSERT INTO")
	_, err := st.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
	pgWant(t, "renew", err, nil)
	texts["renew"] = traced.last(t)
	pgMustClaim(t, st, r, store.Claimed)
	texts["rewrite"] = traced.last(t)
	pgWant(t, "complete", pgComplete(t, st, r, pgBody), nil)
	texts["complete"] = traced.last(t)
	pgWant(t, "complete again", pgComplete(t, st, r, pgBody), nil)
	texts["complete again"] = traced.last(t)
	pgWant(t, "release", st.Release(ctx, r.ID, r.Owner), nil)
	texts["release"] = traced.last(t)
	_, err = st.Inspect(ctx, r.ID)
	pgWant(t, "inspect", err, nil)
	texts["inspect"] = traced.last(t)
	_, err = st.List(ctx, store.Query{Limit: 10})
	pgWant(t, "list", err, nil)
	texts["list"] = traced.last(t)
	_, err = st.Purge(ctx, 10)
	pgWant(t, "purge", err, nil)
	texts["purge"] = traced.last(t)

	damaged := pgClaim()
	pgMustClaim(t, st, damaged, store.Claimed)
	f.exec(t, f.pgDamage("version = 99"), damaged.ID[:])
	shown, err := st.Inspect(ctx, damaged.ID)
	pgWant(t, "inspect", err, nil)
	pgWant(t, "forget", st.Resolve(ctx, damaged.ID, store.Resolution{State: shown.State, Fence: shown.Fence, Forget: true}), nil)
	stuck := pgClaim()
	pgWant(t, "forget", st.Resolve(ctx, stuck.ID, store.Resolution{Fence: lapse(stuck), Forget: true}), nil)
	texts["forget"] = traced.last(t)
	pgWant(t, "resolve", st.Resolve(ctx, stuck.ID, store.Resolution{Fence: lapse(stuck), Payload: []byte("x"), Retention: time.Hour}), nil)
	texts["resolve"] = traced.last(t)

	f.pgWaits(t, st)
	texts["whole lease"] = traced.find(t, "RETURNING (extract(epoch FROM lease_until - clock_timestamp())")

	server := servers.SharedPostgres(t)
	proxy := servers.StartProxy(t, server.Addr())
	cut := pgOn(labtest.NewPool(t, proxy.URL(server.URL()), labtest.ExecMode(pgx.QueryExecModeExec), traced.option), f.Config).Transactional(t)
	lost := pgClaim()
	pgMustClaim(t, cut, lost, store.Claimed)
	pgTx(t, cut, lost)
	proxy.On("COMMIT", servers.LoseReply)
	pgWant(t, "complete without an answer", pgComplete(t, cut, lost, pgBody), nil)
	texts["complete in a transaction"] = traced.find(t, "1 / count(*)")
	texts["limit of the look"] = traced.find(t, "set_config('lock_timeout'")
	return texts
}

// pgWaits makes a claim wait for another session's insert, which is then rolled back.
func (f *pgFixture) pgWaits(t *testing.T, st store.Store) {
	t.Helper()
	r := pgClaim()
	insert, err := f.Pool.Begin(t.Context())
	pgWant(t, "begin", err, nil)
	defer func() { _ = insert.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := insert.Exec(t.Context(), "INSERT INTO "+f.records()+` (id, version, state, attempt, fence, owner, fingerprint, payload, lease_until, valid_until, expires_at, created_at)
		VALUES ($1::bytea, 1, 2, 1, 1, substr($1::bytea, 1, 16), $1::bytea, '', now(), now(), now(), now())`, r.ID[:]); err != nil {
		t.Fatal(err)
	}
	answered := make(chan store.ClaimResult, 1)
	go func() { answered <- pgMustNotFail(t, st, r) }()
	pgEventually(t, "the claim waits", func() bool {
		return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'", f.Config.Schema) == 1
	})
	pgPass(20 * time.Millisecond)
	pgWant(t, "rollback", insert.Rollback(t.Context()), nil)
	if got := <-answered; got.Outcome != store.Claimed {
		t.Fatalf("a claim that waited was answered %v", got.Outcome)
	}
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
func (f *pgFixture) pgUndone(t *testing.T, name string, call func(tx pgx.Tx) error) {
	t.Helper()
	err := pgx.BeginFunc(context.WithoutCancel(t.Context()), f.Pool, func(tx pgx.Tx) error {
		if err := call(tx); err != nil {
			return err
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		t.Fatalf("%s: %v", name, err)
	}
}
