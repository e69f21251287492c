package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3" // the driver sqlite3
	_ "modernc.org/sqlite"          // the driver sqlite

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// driver is a driver of SQLite, and how a URL of it sets what the store wants.
type driver struct{ name, settings string }

var drivers = []driver{
	{"sqlite", "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"},
	{"sqlite3", "?_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL"},
}

// onDrivers runs a test on each driver.
func onDrivers(t *testing.T, test func(*testing.T, driver)) {
	t.Helper()
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			if err := d.open(t, filepath.Join(t.TempDir(), "any.db")).PingContext(t.Context()); err != nil {
				if servers.Required(t, "sqlite") || !strings.Contains(err.Error(), "cgo") {
					t.Fatal(err)
				}
				t.Skip(err) // github.com/mattn/go-sqlite3 needs a C compiler
			}
			test(t, d)
		})
	}
}

// open opens a file, until the test ends.
func (d driver) open(tb testing.TB, file string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(d.name, "file:"+file+d.settings)
	labtest.Must(tb, err)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// newFile returns the path of a database with the table.
func (d driver) newFile(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "records.db")
	labtest.Must(tb, reprisesqlite.Migrate(context.WithoutCancel(tb.Context()), d.open(tb, file), reprisesqlite.Config{}))
	return file
}

// store opens the store over a file, as a separate process has it.
func (d driver) store(tb testing.TB, file string) *reprisesqlite.Store {
	tb.Helper()
	st, err := reprisesqlite.New(d.open(tb, file), reprisesqlite.Config{})
	labtest.Must(tb, err)
	return st
}

// exec executes a statement on a file.
func (d driver) exec(tb testing.TB, file, statement string, args ...any) {
	tb.Helper()
	if _, err := d.open(tb, file).ExecContext(context.WithoutCancel(tb.Context()), statement, args...); err != nil {
		tb.Fatal(err)
	}
}

// attempt is a granted claim whose handler has begun its transaction.
type attempt struct {
	*labtest.TxStore
	store.ClaimRequest

	tx *sql.Tx
}

// begin claims an operation in a file with a table of effects.
func begin(tb testing.TB, st *labtest.TxStore, r store.ClaimRequest) *attempt {
	tb.Helper()
	wantClaim(tb, st, r, store.Claimed)
	tx, err := reprisesqlite.Tx(st.Bind(tb.Context(), r.ID, r.Owner))
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

// wantClaim demands the outcome of a claim.
func wantClaim(tb testing.TB, st store.Store, r store.ClaimRequest, want store.Outcome) store.ClaimResult {
	tb.Helper()
	got, err := st.Claim(tb.Context(), r)
	if err != nil || got.Outcome != want {
		tb.Fatalf("claim: %v, %v; want %v", got.Outcome, err, want)
	}
	return got
}

// duplicate is a claim of the same operation by another owner.
func duplicate(r store.ClaimRequest) store.ClaimRequest {
	r.Owner = store.NewOwner()
	return r
}

// withEffects returns a file with a table of effects.
func (d driver) withEffects(tb testing.TB) string {
	tb.Helper()
	file := d.newFile(tb)
	d.exec(tb, file, "CREATE TABLE effects (name TEXT NOT NULL)")
	return file
}

// wantEffects demands how many effects are committed.
func (d driver) wantEffects(tb testing.TB, file string, want int) {
	tb.Helper()
	var got int
	if err := d.open(tb, file).QueryRowContext(tb.Context(), "SELECT count(*) FROM effects").Scan(&got); err != nil || got != want {
		tb.Errorf("%d effects, %v; want %d", got, err, want)
	}
}
