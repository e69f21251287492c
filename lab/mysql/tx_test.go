package mysql

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// second is the effect that follows the end of a transaction.
const second = "INSERT INTO effects (name) VALUES ('second')"

// TestHandlerThatEndsItsTransactionIsFoundOut: nothing says whether its effects stay, so
// that no retry runs; and no effect that follows is committed.
func TestHandlerThatEndsItsTransactionIsFoundOut(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	st := transactional(t, mysqlserver.Pool(t, raw, 3), reprisemysql.Config{}) // one transaction at once
	for name, statements := range map[string][]string{
		"COMMIT":             {"COMMIT", second},
		"ROLLBACK":           {"ROLLBACK", second},
		"COMMIT, BEGIN":      {"COMMIT", "BEGIN", second},
		"ROLLBACK AND CHAIN": {"ROLLBACK AND CHAIN", second},
		"BEGIN":              {"BEGIN", second}, // commits implicitly
		"CREATE TABLE":       {"CREATE TABLE other (n INT)", second},
	} {
		a := begin(t, st, request())
		a.exec(t, statements...)
		if err := a.complete(t); !errors.Is(err, store.ErrMisconfigured) {
			t.Errorf("%s: %v, want ErrMisconfigured", name, err)
		}
		wantClaim(t, st, duplicate(a.ClaimRequest), store.Lapsed)
	}
	if n := count(t, raw, "SELECT COUNT(*) FROM effects WHERE name = 'second'"); n != 0 {
		t.Errorf("%d effects were committed that followed the end", n)
	}
	mysqlserver.Exec(t, raw, "DELETE FROM effects")
	a := begin(t, st, request()) // nothing of it is left on the connection
	a.exec(t, "SAVEPOINT own", second, "ROLLBACK TO own")
	if err := a.complete(t); err != nil {
		t.Error(err)
	}
	if n := count(t, raw, "SELECT COUNT(*) FROM effects"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// TestHabitsDoNoHarm: a handler that ends its *sql.Tx, or rolls it back when it returns,
// ends nothing.
func TestHabitsDoNoHarm(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	st := transactional(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{})
	for name, end := range map[string]func(*sql.Tx) error{"Commit": (*sql.Tx).Commit, "Rollback": (*sql.Tx).Rollback} {
		a := begin(t, st, request())
		a.exec(t)
		if err := end(a.tx); !errors.Is(err, reprisemysql.ErrTxManaged) {
			t.Errorf("%s: %v, want ErrTxManaged", name, err)
		}
		if n := count(t, raw, "SELECT COUNT(*) FROM effects"); n != 0 {
			t.Errorf("%s: %d effects before the end", name, n)
		}
		if err := a.complete(t); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := count(t, raw, "SELECT COUNT(*) FROM effects"); n != 1 {
			t.Errorf("%s: %d effects, want 1", name, n)
		}
		mysqlserver.Exec(t, raw, "DELETE FROM effects")
	}
}

// TestDeadlockInAHandlerUndoesWhatFollows: the server has rolled back the whole
// transaction, and a handler that goes on has no effect.
func TestDeadlockInAHandlerUndoesWhatFollows(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	db := mysqlserver.Pool(t, raw, 0)
	mysqlserver.Exec(t, raw, "CREATE TABLE accounts (id INT PRIMARY KEY, n INT NOT NULL)")
	mysqlserver.Exec(t, raw, "INSERT INTO accounts VALUES (1, 0), (2, 0)")
	mysqlserver.Exec(t, raw, "INSERT INTO accounts SELECT seq, 0 FROM seq_100_to_200")
	const add = "UPDATE accounts SET n = n + 1 WHERE id = ?"
	a := begin(t, transactional(t, db, reprisemysql.Config{}), request())
	if _, err := a.tx.ExecContext(t.Context(), add, 1); err != nil {
		t.Fatal(err)
	}
	other, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// The server ends the transaction that wrote less.
	for _, statement := range []string{"UPDATE accounts SET n = n + 1 WHERE id >= 100", "UPDATE accounts SET n = n + 1 WHERE id = 2"} {
		if _, err := other.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		_, err := other.ExecContext(t.Context(), add, 1)
		done <- err
	}()
	_, lost := a.tx.ExecContext(t.Context(), add, 2)
	if err := <-done; err != nil || lost == nil {
		t.Fatalf("the attempt: %v, the other one: %v; want a deadlock of the attempt", lost, err)
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.tx.ExecContext(t.Context(), second); err == nil { // a handler that ignores it
		t.Error("a statement after the deadlock succeeded")
	}
	if err := a.complete(t); !errors.Is(err, store.ErrNotApplied) {
		t.Errorf("%v, want ErrNotApplied", err)
	}
	if n := count(t, raw, "SELECT COUNT(*) FROM effects"); n != 0 {
		t.Errorf("%d effects after ErrNotApplied", n)
	}
	wantClaim(t, a, duplicate(a.ClaimRequest), store.Claimed)
}

// TestTransactionThatOutlastsTxTimeoutIsRolledBack: idle, or in a statement, of which the
// server does not hear that its client has left. Another attempt runs afterwards.
func TestTransactionThatOutlastsTxTimeoutIsRolledBack(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	st := transactional(t, mysqlserver.Pool(t, raw, 3), reprisemysql.Config{TxTimeout: time.Second})
	for name, linger := range map[string]string{"idle": "DO 1", "in a statement": "DO SLEEP(60)"} {
		late := begin(t, st, request())
		late.exec(t)
		var locked int
		if err := late.tx.QueryRowContext(t.Context(), "SELECT MAX(id) FROM effects").Scan(&locked); err != nil {
			t.Fatal(err)
		}
		if err := eventually(func() bool {
			_, err := late.tx.ExecContext(t.Context(), linger)
			return err != nil
		}); err != nil {
			t.Errorf("%s: the handler's statements still work: %v", name, err)
		}
		mysqlserver.Exec(t, raw, "INSERT INTO effects (id, name) VALUES (?, 'other')", locked) // it waits for the row of the attempt
		if err := late.complete(t); !errors.Is(err, store.ErrNotApplied) {
			t.Errorf("%s: %v, want ErrNotApplied", name, err)
		}
		again := begin(t, st, duplicate(late.ClaimRequest))
		again.exec(t)
		if err := again.complete(t); err != nil {
			t.Errorf("%s: the attempt that followed: %v", name, err)
		}
		if n := count(t, raw, "SELECT COUNT(*) FROM effects WHERE name = 'first'"); n != 1 {
			t.Errorf("%s: %d effects, want 1", name, n)
		}
		mysqlserver.Exec(t, raw, "DELETE FROM effects")
	}
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
		a := begin(t, st, request())
		a.exec(t)
		go func() {
			_, _ = a.tx.ExecContext(t.Context(), "DO SLEEP(1)")
			released <- st.Release(context.WithoutCancel(t.Context()), a.ID, a.Owner)
		}()
	}
	for range 10 {
		if err := <-released; err != nil {
			t.Error(err)
		}
	}
	if n := count(t, raw, "SELECT COUNT(*) FROM effects"); n != 0 {
		t.Errorf("%d effects of released attempts", n)
	}
}

// TestSessionIsLentAndRestored: a handler reads what others commit meanwhile, whatever
// the session's isolation level is; its limits are those of the attempt, and the pool
// gets the session back as it was.
func TestSessionIsLentAndRestored(t *testing.T) {
	t.Parallel()
	onSessions(t, func(t *testing.T, params string) {
		raw := newDatabase(t)
		limits := "?"
		if params != "" {
			limits = params + "&"
		}
		db := mysqlserver.Pool(t, raw+limits+"wait_timeout=100&max_statement_time=50", 2)
		st := transactional(t, db, reprisemysql.Config{TxTimeout: 10 * time.Second})
		const settings = "SELECT CONCAT_WS(' ', @@autocommit, @@wait_timeout, @@max_statement_time, @@tx_isolation)"
		read := func(on interface {
			QueryRowContext(context.Context, string, ...any) *sql.Row
		}, query string,
		) (got string) {
			t.Helper()
			if err := on.QueryRowContext(t.Context(), query).Scan(&got); err != nil {
				t.Fatal(err)
			}
			return got
		}
		want := read(db, settings)
		for _, commits := range []bool{true, false} {
			a := begin(t, st, request())
			a.exec(t)
			session := read(a.tx, "SELECT CONNECTION_ID()")
			before := read(a.tx, "SELECT COUNT(*) FROM effects")
			if got := read(a.tx, settings); !strings.HasPrefix(got, "OFF 11 11") {
				t.Errorf("the session of a handler has %q", got)
			}
			mysqlserver.Exec(t, raw, "INSERT INTO effects (name) VALUES ('other')")
			if after := read(a.tx, "SELECT COUNT(*) FROM effects"); before == after {
				t.Errorf("a handler reads %s effects before and after one was committed", after)
			}
			end := func() error { return st.Release(t.Context(), a.ID, a.Owner) }
			if commits {
				end = func() error { return a.complete(t) }
			}
			if err := end(); err != nil {
				t.Error(err)
			}
			var sessions []*sql.Conn
			found := false
			for range 2 { // all of the pool
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				sessions = append(sessions, conn)
			}
			for _, conn := range sessions {
				found = found || read(conn, "SELECT CONNECTION_ID()") == session
				if got := read(conn, settings); got != want {
					t.Errorf("the pool got the session back with %q, want %q", got, want)
				}
				_ = conn.Close()
			}
			if !found {
				t.Error("the connection was closed")
			}
		}
	})
}

// eventually polls a condition for up to a minute.
func eventually(condition func() bool) error {
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			return errors.New("not within a minute")
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls
	}
	return nil
}

// TestPoolsOfAnySize: fifty handlers at once commit over pools in which there is hardly
// room for one, and a pool of one is refused.
func TestPoolsOfAnySize(t *testing.T) {
	t.Parallel()
	for conns := range 5 {
		if conns == 3 {
			continue
		}
		db := mysqlserver.Pool(t, newDatabase(t), conns)
		st, err := reprisemysql.New(db, reprisemysql.Config{TxTimeout: 4 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Transacts(); errors.Is(err, store.ErrInvalid) != (conns == 1) {
			t.Errorf("%d connections: %v", conns, err)
		}
		if conns != 1 {
			h := labtest.SQLHandlers{DB: db, Store: st, Tx: reprisemysql.Tx}
			h.FiftyAtOnce(t)
		}
	}
}

// TestDriverPanicsLeaveNothing: of an attempt with effects, at every statement.
func TestDriverPanicsLeaveNothing(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	panicking := &labtest.Panicking{Open: connector(t, raw, true, func(conn *net.TCPConn) net.Conn { return conn }).Connect}
	db := sql.OpenDB(panicking)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(3)
	st, err := reprisemysql.New(db, reprisemysql.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := labtest.SQLHandlers{DB: db, Store: st, Tx: reprisemysql.Tx}
	h.PanicsLeaveNothing(t, panicking)
}
