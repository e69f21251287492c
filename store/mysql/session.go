package reprisemysql

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// sessions begins the transactions of attempts. Each changes the settings of its session
// until it ends.
type sessions struct {
	db      *sql.DB
	table   string
	timeout time.Duration
}

// lock takes the lock of a record, whose name is the same for every session over the
// table.
const lock = "SELECT l.name, GET_LOCK(l.name, 0), @@wait_timeout, @@autocommit FROM " +
	"(SELECT CONCAT('reprise_', LEFT(SHA2(CONCAT_WS('.', DATABASE(), ?, ?), 256), 48)) AS name) AS l"

// backTimeout bounds the statement that restores the settings of a session.
const backTimeout = 2 * time.Second

// Begin implements [sqlstore.Beginner]. It locks the record by a named lock, because
// there may be no row to lock. The lock belongs to the session, and is released after the
// transaction, or when the session ends.
//
// The session has autocommit off until then. A deadlock, or a statement that commits
// implicitly, ends the transaction, and with autocommit on, the handler's next statement
// would commit at once; now it begins a transaction that is never committed. The server
// ends a session whose client is silent for longer than an attempt may last.
func (s *sessions) Begin(ctx context.Context, op string, id store.ID) (*sqlstore.Tx, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, dialect.Fail(op, err)
	}
	tx, err := s.begin(ctx, conn, id)
	if err != nil {
		_ = conn.Close()
	}
	if err != nil && !errors.Is(err, sqlstore.ErrHeld) {
		err = dialect.Fail(op, err)
	}
	return tx, err
}

func (s *sessions) begin(ctx context.Context, conn *sql.Conn, id store.ID) (*sqlstore.Tx, error) {
	var (
		name            string
		locked          sql.NullInt64
		wait, committed int64
	)
	err := conn.QueryRowContext(ctx, lock, s.table, hex.EncodeToString(id[:])).Scan(&name, &locked, &wait, &committed)
	switch {
	case err != nil: // the session may have got the lock
		(&sqlstore.Tx{Conn: conn, Broken: true}).End()
		return nil, err
	case locked.Int64 != 1:
		return nil, sqlstore.ErrHeld
	}
	t := &sqlstore.Tx{Conn: conn, Bounded: true}
	t.Before = func(open bool) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTimeout)
		defer cancel()
		if open { // autocommit = 1 would commit it
			if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
				return err
			}
		}
		_, err := conn.ExecContext(ctx, fmt.Sprintf("SET SESSION autocommit = %d, SESSION wait_timeout = %d, @reprise_lock = RELEASE_LOCK('%s')",
			committed, wait, name))
		return err
	}
	idle := min(wait, int64((s.timeout+time.Second-1)/time.Second)+1)
	if _, err = conn.ExecContext(ctx, fmt.Sprintf("SET SESSION autocommit = 0, SESSION wait_timeout = %d", idle)); err == nil {
		t.Tx, err = conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	}
	if err != nil {
		t.Broken = true
		t.End()
		return nil, err
	}
	return t, nil
}
