package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresLostRacesAreRepeated: a statement that PostgreSQL cannot serialize, or that
// it ends to resolve a deadlock, runs again, eight times at most. Then its caller gets
// ErrBusy: the server is there, and FailOpen opens nothing. Any other failure is not
// repeated.
func TestPostgresLostRacesAreRepeated(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(2))
	st := f.Leased(t)
	for _, test := range []struct {
		code        string
		lost, tries int64 // how many tries fail, and how many there are
		want        error
	}{
		{"40001", 1, 2, nil},
		{"40001", 7, 8, nil},
		{"40P01", 7, 8, nil},
		{"40001", 100, 8, store.ErrBusy},
		{"40P01", 100, 8, store.ErrBusy},
		{"57014", 1, 1, store.ErrUnavailable},
	} {
		f.exec(t, fmt.Sprintf(`DROP SEQUENCE IF EXISTS %[1]s; CREATE SEQUENCE %[1]s;
			CREATE OR REPLACE FUNCTION %[2]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('%[1]s') <= %[3]d THEN RAISE EXCEPTION 'lost' USING ERRCODE = '%[4]s'; END IF;
				RETURN NEW;
			END $$;
			CREATE OR REPLACE TRIGGER lost BEFORE UPDATE ON %[5]s FOR EACH ROW EXECUTE FUNCTION %[2]s()`,
			f.name("tries"), f.name("lose"), test.lost, test.code, f.records()), pgx.QueryExecModeSimpleProtocol)
		r := labtest.Claimed(t, st)
		ctx, cancel := pgCall(t)
		err := st.Release(ctx, r.ID, r.Owner)
		cancel()
		labtest.Want(t, "release", err, test.want)
		if tries := pgValue[int64](t, f.Pool, "SELECT last_value FROM "+f.name("tries")); tries != test.tries {
			t.Errorf("%s, lost %d times: %d tries, want %d", test.code, test.lost, tries, test.tries)
		}
		if raced := test.tries == 8 && test.want != nil; raced != (err != nil && strings.Contains(err.Error(), "changed the record each time")) {
			t.Errorf("%s, lost %d times: %v", test.code, test.lost, err)
		}
	}
}

// TestPostgresRecordChangesBeforeItsTakeover: a claim has judged a record and is about to
// rewrite its row. Whatever becomes of the record first, the claim looks again, and is
// answered from what it finds then, over the same connection. A fence does not fall.
func TestPostgresRecordChangesBeforeItsTakeover(t *testing.T) {
	t.Parallel()
	var before func() // called once, before the claim rewrites the row
	trace := pgTrace(func(_ context.Context, _ *pgx.Conn, statement string) {
		if do := before; do != nil && strings.Contains(statement, "SET attempt = ") {
			before = nil
			do()
		}
	})
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server, labtest.MaxConns(2))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	other := f.Leased(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec} {
		pool := labtest.NewPool(t, server.URL(), trace.option, labtest.ExecMode(mode), labtest.MaxConns(1))
		st, session := pgOn(pool, f.Config).Leased(t), pgValue[int](t, pool, "SELECT pg_backend_pid()")
		for _, over := range []bool{false, true} {
			var (
				r    store.ClaimRequest
				high uint64 // the highest fence that was granted
			)
			claim := func(r store.ClaimRequest) { high = labtest.WantClaim(t, other, r, store.Claimed).Fence }
			release := func(r store.ClaimRequest) { labtest.Want(t, "release", other.Release(ctx, r.ID, r.Owner), nil) }
			next := labtest.Rival(r)
			type change struct {
				do      func()
				want    store.Outcome
				attempt int
			}
			changes := map[string]change{
				"nothing":               {func() {}, store.Claimed, 2},
				"claimed":               {func() { claim(next) }, store.InProgress, 0},
				"claimed and lapsed":    {func() { claim(next); f.exec(t, f.pgDamage("lease_until = "+pgNow), r.ID[:]) }, store.Claimed, 3},
				"claimed and completed": {func() { claim(next); labtest.Want(t, "complete", labtest.Complete(t, other, next, "b"), nil) }, store.Completed, 0},
				"claimed and released":  {func() { claim(next); release(next) }, store.Claimed, 1},
				"purged":                {func() { f.exec(t, "DELETE FROM "+f.records()) }, store.Claimed, 1},
			}
			if over {
				changes["nothing"] = change{func() {}, store.Claimed, 1}
				changes["claimed and lapsed"] = change{changes["claimed and lapsed"].do, store.Claimed, 2}
			} else {
				changes["released"] = change{func() { release(r) }, store.Claimed, 1}
				changes["released and claimed"] = change{func() { release(r); claim(next) }, store.InProgress, 0}
				changes["completed"] = change{func() { labtest.Want(t, "complete", labtest.Complete(t, other, r, "a"), nil) }, store.Completed, 0}
				changes["renewed"] = change{func() {
					_, err := other.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: time.Minute}})
					labtest.Must(t, err)
				}, store.InProgress, 0}
				changes["resolved"] = change{func() {
					labtest.Must(t, other.Resolve(ctx, r.ID, store.Resolution{Fence: high, Payload: []byte("o"), Retention: time.Hour}))
				}, store.Completed, 0}
			}
			for name, c := range changes {
				r = labtest.NewClaim()
				next = labtest.Rival(r)
				claim(r)
				lapse := "lease_until = " + pgNow
				if over {
					lapse = pgEnded
				}
				f.exec(t, f.pgDamage(lapse), r.ID[:])
				done := false
				before = func() { done = true; c.do() }
				got := labtest.WantClaim(t, st, labtest.Rival(r), c.want)
				if !done || got.Attempt != c.attempt || got.Outcome == store.Claimed && got.Fence <= high {
					t.Errorf("%v, past its retention %t, %s: %+v after the fence %d; changed before the claim wrote: %t", mode, over, name, got, high, done)
				}
				f.exec(t, "DELETE FROM "+f.records())
			}
		}
		if now := pgValue[int](t, pool, "SELECT pg_backend_pid()"); now != session {
			t.Errorf("%v: a claim that lost a race closed its connection", mode)
		}
	}
}
