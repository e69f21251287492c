package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

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
