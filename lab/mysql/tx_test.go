package mysql

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

func TestHandlerThatEndsItsTransactionIsFoundOut(t *testing.T) {
	t.Parallel()
	handlers(t, 3, reprisemysql.Config{}).EndsAreFoundOut(t, // one transaction at once
		[]string{"COMMIT", labtest.Second}, []string{"ROLLBACK", labtest.Second}, []string{"COMMIT", "BEGIN", labtest.Second}, []string{"ROLLBACK AND CHAIN", labtest.Second},
		[]string{"BEGIN", labtest.Second}, []string{"CREATE OR REPLACE TABLE other (n INT)", labtest.Second}) // they commit implicitly
}

// handlers are those of a new database over a pool.
func handlers(t *testing.T, conns int, c reprisemysql.Config) *labtest.SQLHandlers {
	t.Helper()
	db := mysqlserver.Pool(t, newDatabase(t), conns)
	return &labtest.SQLHandlers{DB: db, Store: newStore(t, db, c), Tx: reprisemysql.Tx}
}

// TestColumnsOfAHandlersQueryHaveTypes as the driver has them.
func TestColumnsOfAHandlersQueryHaveTypes(t *testing.T) {
	t.Parallel()
	db := mysqlserver.Pool(t, newDatabase(t), 0)
	var types [2][]*sql.ColumnType
	for i, on := range []interface {
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	}{db, begin(t, transactional(t, db, reprisemysql.Config{}), labtest.NewClaim()).Tx} {
		rows, err := on.QueryContext(t.Context(), "SELECT name, CAST(1 AS DECIMAL(5, 2)) FROM effects")
		labtest.Must(t, err)
		types[i], err = rows.ColumnTypes()
		labtest.Must(t, errors.Join(err, rows.Close()))
	}
	if !reflect.DeepEqual(types[0], types[1]) {
		t.Errorf("%+v, want %+v", types[1], types[0])
	}
}

// TestFailureThatEndedTheTransactionUndoesWhatFollows: the server has rolled it back as a
// whole, and a handler that goes on has no effect.
func TestFailureThatEndedTheTransactionUndoesWhatFollows(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t, "innodb-rollback-on-timeout=ON", "loose-innodb-snapshot-isolation=ON")
	raw := withEffects(t, server)
	db := mysqlserver.Pool(t, raw, 0)
	mysqlserver.Exec(t, raw, "CREATE TABLE accounts (id INT PRIMARY KEY, n INT NOT NULL)")
	mysqlserver.Exec(t, raw, "INSERT INTO accounts VALUES (1, 0), (2, 0)")
	mysqlserver.Exec(t, raw, "INSERT INTO accounts SELECT seq, 0 FROM seq_100_to_200")
	const add = "UPDATE accounts SET n = n + 1 WHERE id "
	for name, c := range map[string]struct {
		statement string
		other     string // of the transaction for which it waits
	}{
		"a deadlock":                         {add + "= 2", add + "= 1"},
		"a deadlock while rows are read":     {"SELECT n FROM accounts WHERE id IN (2, 101) FOR UPDATE", add + "= 1"},
		"a lock wait timeout":                {"SET STATEMENT innodb_lock_wait_timeout = 1 FOR " + add + "= 2", "DO 1"},
		"a change since the statement began": {add + "= (SELECT COUNT(*) + 1 FROM effects)", "COMMIT"},
	} {
		a := begin(t, transactional(t, db, reprisemysql.Config{}), labtest.NewClaim())
		a.Effect(t, add+"= 1")
		other := writing(t, raw, add+">= 100") // the server ends the transaction that wrote less
		labtest.Exec(t, other, add+"= 2")
		failed := make(chan error, 1)
		go func() { failed <- a.Tx.QueryRowContext(t.Context(), c.statement).Scan(new(int)) }()
		labtest.Eventually(t, name+": it waits", func() bool {
			return len(failed) > 0 || lockWaits(t, raw, "") > 0
		})
		labtest.Exec(t, other, c.other)
		if err := <-failed; err == nil || errors.Is(err, sql.ErrNoRows) {
			t.Fatalf("%s: nothing failed", name)
		}
		if _, err := a.Tx.ExecContext(t.Context(), labtest.Second); err == nil { // a handler that ignores it
			t.Errorf("%s: a statement after it succeeded", name)
		}
		_ = other.Rollback()
		labtest.Want(t, name, a.End(t), store.ErrNotApplied)
		wantEffects(t, raw, 0)
		labtest.WantClaim(t, a, labtest.Rival(a.ClaimRequest), store.Claimed)
	}
}

func TestTransactionThatOutlastsTxTimeoutIsRolledBack(t *testing.T) {
	t.Parallel()
	h := handlers(t, 3, reprisemysql.Config{TxTimeout: time.Second})
	h.TimesOut(t, "DO SLEEP(60)", "DELETE FROM effects")
	a := begin(t, labtest.NewTxStore(h.Store), labtest.NewClaim())
	a.Effect(t, "COMMIT")
	labtest.Eventually(t, "it is over", func() bool { return h.Store.Usage()[0].Used == 0 })
	labtest.Want(t, "one that its handler had ended", a.End(t), store.ErrMisconfigured)
}

// TestReleaseIsNotFasterThanTheRollbackOfTxTimeout: the rollback waits for a statement of
// the handler, which releases the attempt as soon as that statement ends. The statement
// that resets the session would commit a transaction that is open still.
func TestReleaseIsNotFasterThanTheRollbackOfTxTimeout(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	st := transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{TxTimeout: time.Second})
	released := make(chan error)
	for range 10 {
		a := begin(t, st, labtest.NewClaim())
		a.Effect(t)
		go func() {
			_, _ = a.Tx.ExecContext(t.Context(), "DO SLEEP(1)")
			released <- st.Release(context.WithoutCancel(t.Context()), a.ID, a.Owner)
		}()
	}
	for range 10 {
		labtest.Must(t, <-released)
	}
	wantEffects(t, raw, 0)
}

// TestSessionIsLentAndRestored: a handler reads what others commit meanwhile, whatever
// the session's isolation level is; its limits are those of the attempt, and the pool
// gets the session back as it was.
func TestSessionIsLentAndRestored(t *testing.T) {
	t.Parallel()
	onSessions(t, func(t *testing.T, params string) {
		raw := newDatabase(t)
		db := mysqlserver.Pool(t, raw+"?wait_timeout=100&max_statement_time=50&"+strings.TrimPrefix(params, "?"), 2)
		st := transactional(t, db, reprisemysql.Config{TxTimeout: 10 * time.Second})
		const settings = "SELECT CONCAT_WS(' ', @@autocommit, @@wait_timeout, @@max_statement_time, @@tx_isolation)"
		read := func(on interface {
			QueryRowContext(context.Context, string, ...any) *sql.Row
		}, query string,
		) (got string) {
			t.Helper()
			labtest.Must(t, on.QueryRowContext(t.Context(), query).Scan(&got))
			return got
		}
		want := read(db, settings)
		for _, commits := range []bool{true, false} {
			a := begin(t, st, labtest.NewClaim())
			a.Effect(t)
			before := read(a.Tx, "SELECT COUNT(*) FROM effects")
			if got := read(a.Tx, settings); !strings.HasPrefix(got, "OFF 11 11") {
				t.Errorf("the session of a handler has %q", got)
			}
			mysqlserver.Exec(t, raw, "INSERT INTO effects (name) VALUES ('other')")
			if after := read(a.Tx, "SELECT COUNT(*) FROM effects"); before == after {
				t.Errorf("a handler reads %s effects before and after one was committed", after)
			}
			open := db.Stats().OpenConnections
			if commits {
				labtest.Must(t, a.End(t))
			} else {
				labtest.Must(t, st.Release(t.Context(), a.ID, a.Owner))
			}
			labtest.Eventually(t, "the session is restored", func() bool { return db.Stats().InUse == 0 })
			if n := db.Stats().OpenConnections; n != open {
				t.Errorf("%d connections are open, want %d", n, open)
			}
			one, err := db.Conn(t.Context())
			labtest.Must(t, err)
			other, err := db.Conn(t.Context())
			labtest.Must(t, err)
			for _, conn := range []*sql.Conn{one, other} {
				if got := read(conn, settings); got != want {
					t.Errorf("the pool got the session back with %q, want %q", got, want)
				}
				_ = conn.Close()
			}
		}
	})
}

// TestPoolsOfAnySize: fifty handlers at once commit over pools in which there is hardly
// room for one, and a pool of one is refused.
func TestPoolsOfAnySize(t *testing.T) {
	t.Parallel()
	for _, conns := range []int{0, 1, 2, 4} {
		h := handlers(t, conns, reprisemysql.Config{TxTimeout: 4 * time.Second})
		if err := h.Store.Transacts(); errors.Is(err, store.ErrInvalid) != (conns == 1) {
			t.Errorf("%d connections: %v", conns, err)
		}
		if conns != 1 {
			h.FiftyAtOnce(t)
		}
	}
}

// TestDriverPanicsLeaveNothing: of an attempt with effects, at every statement.
func TestDriverPanicsLeaveNothing(t *testing.T) {
	t.Parallel()
	for name, interpolate := range map[string]bool{"interpolated": true, "prepared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := newDatabase(t)
			panicking := &labtest.Panicking{Open: connector(t, raw, interpolate, func(conn *net.TCPConn) net.Conn { return conn }).Connect}
			db := sql.OpenDB(panicking)
			t.Cleanup(func() { _ = db.Close() })
			db.SetMaxOpenConns(3)
			st := newStore(t, db, reprisemysql.Config{})
			h := labtest.SQLHandlers{DB: db, Store: st, Tx: reprisemysql.Tx}
			h.PanicsLeaveNothing(t, panicking.At)
		})
	}
}
