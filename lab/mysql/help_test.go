package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// newDatabase returns the URL of a new database on the shared server, with a table of
// effects.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	return withEffects(tb, servers.SharedMariaDB(tb))
}

func withEffects(tb testing.TB, s *servers.MariaDBServer) string {
	tb.Helper()
	raw := mysqlserver.New(tb, s)
	mysqlserver.Exec(tb, raw, "CREATE TABLE effects (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(64) NOT NULL)")
	return raw
}

// request is a claim of a new operation.
func request() store.ClaimRequest {
	r := store.ClaimRequest{Owner: store.NewOwner(), Lease: time.Minute, Takeover: true, Policy: store.Policy{Retention: time.Hour, Horizon: time.Hour}}
	_, _ = rand.Read(r.ID[:]) // never fails
	return r
}

// duplicate is a claim of the same operation by another owner.
func duplicate(r store.ClaimRequest) store.ClaimRequest {
	r.Owner = store.NewOwner()
	return r
}

func completion(r store.ClaimRequest, payload []byte) store.CompleteRequest {
	return store.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: payload, Policy: r.Policy, Attempt: 1, Fence: 1}
}

// wantClaim demands the outcome of a claim.
func wantClaim(tb testing.TB, st store.Store, r store.ClaimRequest, want store.Outcome) store.ClaimResult {
	tb.Helper()
	got, err := st.Claim(tb.Context(), r)
	if err != nil || got.Outcome != want {
		tb.Fatalf("claim: %v, %v; want %v", got.Outcome, err, want)
	}
	return got
}

// count returns the number that a query selects.
func count(tb testing.TB, raw, query string, args ...any) (n int) {
	tb.Helper()
	if err := mysqlserver.Pool(tb, raw, 1).QueryRowContext(tb.Context(), query, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return n
}

// wantEffects demands how many effects are committed.
func wantEffects(tb testing.TB, raw string, want int) {
	tb.Helper()
	if n := count(tb, raw, "SELECT COUNT(*) FROM effects"); n != want {
		tb.Errorf("%d effects, want %d", n, want)
	}
}

// writing returns a transaction of another client that has executed a statement.
func writing(tb testing.TB, raw, statement string, args ...any) *sql.Tx {
	tb.Helper()
	tx, err := mysqlserver.Pool(tb, raw, 1).BeginTx(tb.Context(), nil)
	labtest.Must(tb, err)
	tb.Cleanup(func() { _ = tx.Rollback() })
	labtest.Exec(tb, tx, statement, args...)
	return tx
}

// newStore returns the store over a pool.
func newStore(tb testing.TB, db *sql.DB, c reprisemysql.Config) *reprisemysql.Store {
	tb.Helper()
	st, err := reprisemysql.New(db, c)
	labtest.Must(tb, err)
	return st
}

// transactional opens the store over a pool, as a transactional policy uses it.
func transactional(tb testing.TB, db *sql.DB, c reprisemysql.Config) *labtest.TxStore {
	tb.Helper()
	return labtest.NewTxStore(newStore(tb, db, c))
}

// attempt is a granted claim whose handler has begun its transaction.
type attempt struct {
	*labtest.TxStore
	store.ClaimRequest

	tx *sql.Tx
}

// begin claims an operation, whose attempt the end of the test releases.
func begin(tb testing.TB, st *labtest.TxStore, r store.ClaimRequest) *attempt {
	tb.Helper()
	tb.Cleanup(func() { _ = st.Release(context.WithoutCancel(tb.Context()), r.ID, r.Owner) })
	wantClaim(tb, st, r, store.Claimed)
	tx, err := reprisemysql.Tx(st.Bind(tb.Context(), r.ID, r.Owner))
	labtest.Must(tb, err)
	return &attempt{st, r, tx}
}

// exec writes an effect, and then executes statements.
func (a *attempt) exec(tb testing.TB, statements ...string) {
	tb.Helper()
	for _, s := range append([]string{"INSERT INTO effects (name) VALUES ('first')"}, statements...) {
		if _, err := a.tx.ExecContext(tb.Context(), s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
}

// complete commits the transaction with the answer.
func (a *attempt) complete(tb testing.TB) error {
	tb.Helper()
	return a.Complete(tb.Context(), completion(a.ClaimRequest, []byte("answer")))
}
