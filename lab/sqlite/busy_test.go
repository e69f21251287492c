package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// literal is a driver that behaves as SQLite: a commit that finds the file busy leaves
// its transaction open. Older versions of drivers were so.
type literal struct{ sqldriver.Driver }

func init() { sql.Register("sqlite-literal", literal{&sqlite.Driver{}}) }

func (d literal) Open(name string) (sqldriver.Conn, error) {
	c, err := d.Driver.Open(name)
	conn, _ := c.(labtest.AnyConn)
	return &literalConn{conn}, err
}

type literalConn struct{ labtest.AnyConn }

func (c *literalConn) BeginTx(ctx context.Context, _ sqldriver.TxOptions) (sqldriver.Tx, error) {
	err := c.exec(ctx, "BEGIN")
	return c, err
}

func (c *literalConn) Commit() error   { return c.exec(context.Background(), "COMMIT") }
func (c *literalConn) Rollback() error { return c.exec(context.Background(), "ROLLBACK") }

func (c *literalConn) exec(ctx context.Context, statement string) error {
	_, err := c.ExecContext(ctx, statement, nil)
	return err
}

// TestBusyCommitLeavesNothingOpen: without WAL a commit waits for readers, and fails. Its
// transaction does not stay on the connection, where it would shut all writers out.
func TestBusyCommitLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	d := driver{"sqlite-literal", "?_pragma=busy_timeout(50)&_pragma=journal_mode(DELETE)"}
	file := filepath.Join(t.TempDir(), "records.db")
	db := d.open(t, file)
	labtest.Must(t, reprisesqlite.Migrate(t.Context(), db, reprisesqlite.Config{}))
	st, err := reprisesqlite.New(db, reprisesqlite.Config{})
	labtest.Must(t, err)
	a := begin(t, labtest.NewTxStore(st), labtest.NewClaim())
	reader, err := d.open(t, file).QueryContext(t.Context(), "SELECT 1 FROM sqlite_master UNION ALL SELECT 2 FROM sqlite_master")
	if err != nil || !reader.Next() {
		t.Fatal(err)
	}
	labtest.Want(t, "complete", a.End(t), store.ErrNotApplied)
	if _, err := st.Claim(t.Context(), labtest.NewClaim()); !errors.Is(err, store.ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
	labtest.Must(t, errors.Join(reader.Err(), reader.Close()))
	labtest.Claimed(t, st)
	labtest.Must(t, begin(t, a.TxStore, labtest.NewClaim()).End(t))
}

// TestTransactionLeftOpenIsFoundOut: one that the application left on the connection of
// the pool, in which a read would see the past, and a write would not be committed. The
// error names the cause, and the next call works.
func TestTransactionLeftOpenIsFoundOut(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		file := d.withEffects(t)
		db := d.open(t, file)
		db.SetMaxOpenConns(2)
		st, err := reprisesqlite.New(db, reprisesqlite.Config{})
		labtest.Must(t, err)
		other := d.store(t, file)
		for name, call := range map[string]func(r store.ClaimRequest) error{
			"a read": func(r store.ClaimRequest) error {
				_, err := st.Inspect(t.Context(), r.ID)
				return err
			},
			"a claim": func(r store.ClaimRequest) error {
				_, err := st.Claim(t.Context(), labtest.Rival(r))
				return err
			},
			"a write": func(r store.ClaimRequest) error { return st.Release(t.Context(), r.ID, r.Owner) },
			"a handler": func(r store.ClaimRequest) error {
				_, err := reprisesqlite.Tx(labtest.NewTxStore(st).Bind(t.Context(), r.ID, r.Owner))
				return err
			},
		} {
			for _, left := range [][]string{{"BEGIN", "SELECT count(*) FROM reprise_records"}, {"BEGIN", "INSERT INTO effects (name) VALUES ('left')"}} {
				r := labtest.Claimed(t, st)
				for _, statement := range left {
					labtest.Exec(t, db, statement) // on the one connection that is idle
				}
				err := call(r)
				if !errors.Is(err, store.ErrMisconfigured) || !strings.Contains(fmt.Sprint(err), "open transaction") {
					t.Errorf("%s after %s: %v, want ErrMisconfigured", name, left[1], err)
				}
				labtest.Claimed(t, other) // no lock is left
				labtest.Claimed(t, st)
			}
		}
		d.wantEffects(t, file, 0)
	})
}
