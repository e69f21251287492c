package reprisepg

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/internal/sqltx"
)

// session is the connection of one transaction. It implements [lazytx.Session]. Its
// completion and COMMIT are one batch: if the UPDATE of the record finds no row, it
// fails, and the transaction with it.
type session struct {
	table    *table
	conn     *heldConn
	lent     *sqltx.Lent // over a *sql.DB
	tx       *sql.Tx     // that of lent
	prepared bool        // the session has the prepared statements
	beganAt  int64       // by the server's clock, in µs since 1970
	ended    atomic.Bool // further calls of the handler are refused

	savepoints atomic.Int64 // how many the handler opened
}

var _ lazytx.Session = (*session)(nil)

// begin takes a connection, and begins the transaction on it, in one round trip.
func (t *table) begin(ctx context.Context, _ store.ID, _ store.Owner) (lazytx.Session, error) {
	conn, err := t.db.hold(ctx, "begin")
	if err != nil {
		return nil, err
	}
	s := &session{table: t, conn: conn, prepared: t.prepares(conn.Conn)}
	begun := false
	defer func() { //nolint:contextcheck // close does not wait; also when a tracer of the application panics
		if !begun {
			s.close()
		}
	}()
	if err := s.beginOn(ctx, conn.Conn); err != nil {
		if hasCode(err, codeReadOnly, codeUnsupported) { // a standby refuses READ WRITE
			conn.kill()
		}
		return nil, t.Dialect.Fail("begin", err)
	}
	if conn.driver != nil {
		if s.lent, err = sqltx.Lend(conn.driver, nil); err != nil { //nolint:contextcheck // it outlives this call
			return nil, t.Dialect.Fail("begin", err)
		}
		s.tx = s.lent.Tx
	}
	begun = true
	return s, nil
}

// beginOn sends BEGIN and the limits. Where the session lacks the prepared statements, it
// sends them once more without.
func (t *session) beginOn(ctx context.Context, conn *pgx.Conn) error {
	s := t.table
	send := func() error {
		if t.prepared {
			for _, text := range []string{beginTx, s.statements.limits, s.statements.same, s.statements.completeInTx, commitTx} {
				if _, err := prepare(ctx, conn, text); err != nil {
					return err
				}
			}
		}
		var process uint32
		_, _, err := send(ctx, conn, t.prepared, statementCall{text: beginTx}, statementCall{
			s.statements.limits,
			[]any{strconv.FormatInt(s.Options.TxTimeout.Milliseconds(), 10) + "ms"},
			func(row sqlstore.Row) error { return row.Scan(&t.beganAt, &process, nil, nil, nil) },
		})
		// A pooler invents process IDs. Behind one, the session may lack a statement that was
		// not needed yet.
		t.prepared = t.prepared && conn.PgConn().PID() == process
		return err
	}
	prepared := t.prepared
	err := send()
	if prepared && notPrepared(err) {
		s.lost(ctx, conn, err)
		t.prepared = false
		if conn.PgConn().TxStatus() != txIdle {
			if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
				return err
			}
		}
		err = send()
	}
	return err
}

// Expire implements [lazytx.Session]: the server rolls back when it finds the connection
// closed.
func (t *session) Expire() (over bool, err error) {
	t.conn.kill()
	return false, nil
}

// Refuse implements [lazytx.Session].
func (t *session) Refuse() {
	t.ended.Store(true)
	if t.lent != nil {
		t.lent.Refuse()
	}
}

// Rollback implements [lazytx.Session]. It closes the connection if it fails.
func (t *session) Rollback(ctx context.Context) error {
	t.takeBack(ctx)
	calls := []statementCall{{text: t.table.statements.same, args: []any{t.beganAt}}, {text: "ROLLBACK"}}
	switch status := t.conn.PgConn().TxStatus(); {
	case status == txIdle:
		return lazytx.EndedByHandler(storeName)
	case t.conn.IsClosed(), t.conn.killed.Load():
		return nil
	case status == txFailed: // the server executes no other statement before
		calls = []statementCall{calls[1], {text: t.table.statements.uncommitted, args: calls[0].args}}
	}
	_, _, err := send(ctx, t.conn.Conn, false, calls...)
	if err == nil {
		return nil
	}
	t.conn.kill()
	if hasCode(err, codeDivisionByZero) {
		return lazytx.EndedByHandler(storeName)
	}
	return fmt.Errorf("%w: postgres: rollback: %s", store.ErrUnknown, err.Error())
}

// takeBack takes the connection back from database/sql. That waits for a statement that
// the handler left running, so that ctx bounds it.
func (t *session) takeBack(ctx context.Context) {
	if t.lent == nil {
		return
	}
	stop := context.AfterFunc(ctx, t.conn.kill)
	defer stop()
	t.unlend()
}

func (t *session) unlend() {
	t.lent.Close()
	t.lent.End()
	t.lent = nil
}

// End implements [lazytx.Session].
func (t *session) End(back func()) {
	t.close()
	back()
}

// close gives the connection back. The pool closes one that is still in a transaction.
func (t *session) close() {
	t.Refuse()
	if t.lent != nil {
		t.conn.kill()
		t.unlend()
	}
	t.conn.release()
}

// The states of a connection that pgx reports.
const (
	txIdle   = 'I' // no transaction
	txFailed = 'E' // a transaction whose last statement failed
)
