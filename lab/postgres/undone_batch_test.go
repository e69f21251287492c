package postgres

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
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
// session did not know, is undone and sent once more. What it answered the first time
// counts for nothing: others may have claimed meanwhile.
func TestPostgresUndoneBatch(t *testing.T) {
	t.Parallel()
	session := &forgetful{claims: map[*pgx.Conn]bool{}}
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server, labtest.MaxConns(4), session.option)
	store := f.Leased(t)
	other := pgOn(labtest.NewPool(t, server.URL()), f.Config).Leased(t)
	for range 50 {
		keys, granted := make([]reprise.ClaimRequest, manyCallers), make([]atomic.Int64, manyCallers)
		for i := range keys {
			keys[i] = pgClaim()
			if i%2 == 0 {
				pgMustClaim(t, other, keys[i], reprise.Claimed)
			}
		}
		session.mu.Lock()
		session.armed = true
		session.between = func() {
			for i := range keys {
				if i%2 == 1 && pgMustNotFail(t, other, pgRival(keys[i])).Outcome == reprise.Claimed {
					granted[i].Add(1)
				}
			}
		}
		session.mu.Unlock()
		pgTogether(manyCallers, func(i int) {
			if i%2 == 0 {
				pgWant(t, "complete", pgComplete(t, store, keys[i], pgBody), nil)
			} else if pgMustNotFail(t, store, keys[i]).Outcome == reprise.Claimed {
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
