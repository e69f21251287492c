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
	ctx, cancel := labtest.Call(t)
	defer cancel()
	pool, other := labtest.NewPool(t, server.URL(), trace.option, labtest.MaxConns(1)), f.Leased(t)
	st, session := pgOn(pool, f.Config).Leased(t), pgValue[int](t, pool, "SELECT pg_backend_pid()")
	var (
		r, next store.ClaimRequest
		high    uint64 // the highest fence that was granted
	)
	claim := func(r store.ClaimRequest) { high = labtest.WantClaim(t, other, r, store.Claimed).Fence }
	complete := func(r store.ClaimRequest) { labtest.Must(t, labtest.Complete(t, other, r, "answer")) }
	release := func(r store.ClaimRequest) { labtest.Must(t, other.Release(ctx, r.ID, r.Owner)) }
	lapse := func() { claim(next); f.exec(t, f.pgDamage(pgLapsed), r.ID[:]) }
	purge := func() { f.exec(t, "DELETE FROM "+f.records()) }
	for name, c := range map[string]struct {
		end     string // of the record that the claim judges
		do      func()
		want    store.Outcome
		attempt int
	}{
		"nothing":                             {pgLapsed, func() {}, store.Claimed, 2},
		"claimed":                             {pgLapsed, func() { claim(next) }, store.InProgress, 0},
		"claimed and lapsed":                  {pgLapsed, lapse, store.Claimed, 3},
		"claimed and completed":               {pgLapsed, func() { claim(next); complete(next) }, store.Completed, 0},
		"claimed and released":                {pgLapsed, func() { claim(next); release(next) }, store.Claimed, 1},
		"purged":                              {pgLapsed, purge, store.Claimed, 1},
		"released":                            {pgLapsed, func() { release(r) }, store.Claimed, 1},
		"released and claimed":                {pgLapsed, func() { release(r); claim(next) }, store.InProgress, 0},
		"completed":                           {pgLapsed, func() { complete(r) }, store.Completed, 0},
		"nothing, past its retention":         {pgEnded, func() {}, store.Claimed, 1},
		"claimed, past its retention":         {pgEnded, func() { claim(next) }, store.InProgress, 0},
		"claimed, lapsed, past its retention": {pgEnded, lapse, store.Claimed, 2},
		"purged, past its retention":          {pgEnded, purge, store.Claimed, 1},
		"renewed": {pgLapsed, func() {
			_, err := other.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: time.Minute}})
			labtest.Must(t, err)
		}, store.InProgress, 0},
		"resolved": {pgLapsed, func() {
			labtest.Must(t, other.Resolve(ctx, r.ID, store.Resolution{Fence: high, Payload: []byte("o"), Retention: time.Hour}))
		}, store.Completed, 0},
	} {
		r = labtest.NewClaim()
		next = labtest.Rival(r)
		claim(r)
		f.exec(t, f.pgDamage(c.end), r.ID[:])
		done := false
		before = func() { done = true; c.do() }
		got := labtest.WantClaim(t, st, labtest.Rival(r), c.want)
		if !done || got.Attempt != c.attempt || got.Outcome == store.Claimed && got.Fence <= high {
			t.Errorf("%s: %+v after the fence %d; changed before the claim wrote: %t", name, got, high, done)
		}
		f.exec(t, "DELETE FROM "+f.records())
	}
	if now := pgValue[int](t, pool, "SELECT pg_backend_pid()"); now != session {
		t.Error("a claim that lost a race closed its connection")
	}
}
