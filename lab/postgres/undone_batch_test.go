package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// forgetful lets a session forget the prepared completions of a batch that claims, too,
// as one that a pooler lends out may not have them, and calls between before the batch is
// sent once more.
type forgetful struct {
	between func()

	mu       sync.Mutex
	armed    bool
	forgot   *pgx.Conn // whose statement is gone, until its batch is sent again
	happened bool
	claims   map[*pgx.Conn]bool // whether the batch that is being traced has claims
}

func (f *forgetful) option(c *pgxpool.Config) { c.ConnConfig.Tracer = f }

// TraceQueryStart implements pgx.QueryTracer.
func (f *forgetful) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case strings.Contains(data.SQL, "_claims_v1"):
		f.claims[conn] = true
		if f.forgot == conn {
			f.forgot, f.happened = nil, true
			f.between()
		}
	case strings.Contains(data.SQL, "_completes_v1") && f.armed && f.claims[conn]:
		found, err := conn.PgConn().Exec(ctx, "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%completes_v1%'").ReadAll()
		if err == nil && len(found[0].Rows) == 1 {
			_, _ = conn.PgConn().Exec(ctx, "DEALLOCATE "+string(found[0].Rows[0][0])).ReadAll()
			f.armed, f.forgot = false, conn
		}
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (f *forgetful) TraceQueryEnd(_ context.Context, conn *pgx.Conn, _ pgx.TraceQueryEndData) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.claims, conn)
}

// TestPostgresUndoneBatch (G1): a batch whose claims succeeded, and whose completions a
// session did not know, is undone and sent once more. The first results are void: others
// may have claimed in between.
func TestPostgresUndoneBatch(t *testing.T) {
	t.Parallel()
	session := &forgetful{claims: map[*pgx.Conn]bool{}}
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server, labtest.MaxConns(4), session.option)
	st := f.Leased(t)
	other := pgOn(labtest.NewPool(t, server.URL()), f.Config).Leased(t)
	for range 50 {
		keys, granted := make([]store.ClaimRequest, manyCallers), make([]atomic.Int64, manyCallers)
		for i := range keys {
			keys[i] = labtest.NewClaim()
			if i%2 == 0 {
				labtest.WantClaim(t, other, keys[i], store.Claimed)
			}
		}
		session.mu.Lock()
		session.armed = true
		session.between = func() {
			for i := range keys {
				if i%2 == 1 && pgMustNotFail(t, other, labtest.Rival(keys[i])).Outcome == store.Claimed {
					granted[i].Add(1)
				}
			}
		}
		session.mu.Unlock()
		pgTogether(manyCallers, func(i int) {
			if i%2 == 0 {
				labtest.Must(t, labtest.Complete(t, st, keys[i], pgBody))
			} else if pgMustNotFail(t, st, keys[i]).Outcome == store.Claimed {
				granted[i].Add(1)
			}
		})
		for i := range granted {
			if n := granted[i].Load(); i%2 == 1 && n != 1 {
				t.Errorf("%d claims of one key were granted", n)
			}
		}
		session.mu.Lock()
		happened := session.happened
		session.mu.Unlock()
		if happened {
			return
		}
	}
	t.Error("no batch of claims and completions was sent twice")
}

// TestPostgresBatchRecreatesADeletedRecord: a batch sees a record and creates it, because
// it was deleted in between, as a purge does. The call that owns the new record has
// claimed it: if it reported another owner, no process would run the record.
func TestPostgresBatchRecreatesADeletedRecord(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server, labtest.MaxConns(40))
	st := f.Leased(t)
	other := pgOn(labtest.NewPool(t, server.URL()), f.Config).Leased(t)
	f.exec(t, "ALTER FUNCTION "+f.name("reprise_records_claims_v1")+" SET lock_timeout = '20s'")
	replayed := labtest.Completed(t, st, pgBody)
	for range 150 {
		labtest.WantClaim(t, st, labtest.Rival(replayed), store.Completed)
	}

	// Creations of the even ones wait for a lock; the odd ones are in progress.
	blocker, err := f.Pool.Begin(t.Context())
	labtest.Must(t, err)
	defer func() { _ = blocker.Rollback(context.WithoutCancel(t.Context())) }()
	put := f.pgInsert("(SELECT $1::bytea AS id) AS s", nil)
	owners, claims := make([]store.ClaimRequest, manyCallers), make([]store.ClaimRequest, manyCallers)
	for i := range claims {
		owners[i] = labtest.NewClaim()
		owners[i].ID[0] = byte(i%2) * 0xff
		claims[i] = labtest.Rival(owners[i])
		if i%2 == 1 {
			labtest.WantClaim(t, other, owners[i], store.Claimed)
			continue
		}
		pgExec(t, blocker, put, claims[i].ID[:])
	}
	outcomes := make([]store.Outcome, manyCallers)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pgTogether(manyCallers, func(i int) { outcomes[i] = pgMustNotFail(t, st, claims[i]).Outcome })
	}()
	labtest.Eventually(t, "a batch waits", func() bool {
		return pgValue[int](t, f.Pool, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%claims_v1%'", f.Config.Schema) > 0
	})
	for i := 1; i < manyCallers; i += 2 {
		f.exec(t, "DELETE FROM "+f.records()+" WHERE id = $1", owners[i].ID[:])
	}
	labtest.Must(t, blocker.Rollback(t.Context()))
	<-ended
	created := 0
	for i := 1; i < manyCallers; i += 2 {
		owned := pgValue[bool](t, f.Pool, "SELECT EXISTS (SELECT FROM "+f.records()+" WHERE id = $1 AND owner = $2)", claims[i].ID[:], claims[i].Owner[:])
		if owned != (outcomes[i] == store.Claimed) {
			t.Errorf("the claim was answered %v, and the record is its own: %t", outcomes[i], owned)
		}
		if owned {
			created++
		}
	}
	if created == 0 {
		t.Error("no claim created a record that was deleted")
	}
}

// TestPostgresBatchWhoseSessionEnds: when a session ends with a batch in flight, each
// call of the batch gets an unknown outcome, and is not silently repeated; the others
// succeed.
func TestPostgresBatchWhoseSessionEnds(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(40))
	st := f.Leased(t)
	f.exec(t, "ALTER FUNCTION "+f.name("reprise_records_claims_v1")+" SET lock_timeout = '20s'")
	blocker, err := f.Pool.Begin(t.Context())
	labtest.Must(t, err)
	defer func() { _ = blocker.Rollback(context.WithoutCancel(t.Context())) }()
	put := f.pgInsert("(SELECT $1::bytea AS id) AS s", nil)
	claims := make([]store.ClaimRequest, manyCallers)
	for i := range claims {
		claims[i] = labtest.NewClaim()
		pgExec(t, blocker, put, claims[i].ID[:])
	}
	outcomes, failures := make([]store.Outcome, manyCallers), make([]error, manyCallers)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pgTogether(manyCallers, func(i int) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			got, err := st.Claim(ctx, claims[i])
			outcomes[i], failures[i] = got.Outcome, err
		})
	}()
	labtest.Eventually(t, "a batch waits", func() bool {
		return pgValue[int](t, f.Pool, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%claims_v1%'`, f.Config.Schema) > 0
	})
	labtest.Must(t, blocker.Rollback(t.Context()))
	<-ended
	unknown := 0
	for i, err := range failures {
		switch {
		case errors.Is(err, store.ErrUnknown):
			unknown++
		case err != nil || outcomes[i] != store.Claimed:
			t.Errorf("a claim ended with %v, %v", outcomes[i], err)
		}
	}
	if unknown < 2 {
		t.Errorf("of %d claims nothing is known of %d, want those of a batch", manyCallers, unknown)
	}
}
