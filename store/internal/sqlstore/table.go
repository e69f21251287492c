package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/replays"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// Table is the store of any database: the table of the records, with every operation.
type Table struct {
	Dialect *Dialect
	Writer  Writer
	Lend    Lend // for a migration
	Options Options
	Own     Own                      // nil: none
	Recent  replays.Ratio            // the share of replays among claims
	Conns   func() (used, limit int) // of the pool; the limit is 0 where there is none

	Accepted     []string // codes of unsafe findings that are warnings
	Transactions *lazytx.Transactions

	db          *Pool // nil where the database has a pool of its own
	statements  statements
	turns       *slots.Slots            // of writes for a connection
	unconfirmed atomic.Bool             // the last commit that failed is not known to be confirmed; see Claim
	writer      atomic.Pointer[session] // the handler's transaction that excludes all other writers
}

// NewTable returns the table of o.Table. It does not contact the database.
func NewTable(db *Pool, d *Dialect, o Options, w Writer, conns func() (used, limit int)) *Table {
	t := &Table{Dialect: d, Writer: w, Options: o, Conns: conns, db: db, statements: d.statements(o.Table)}
	if db != nil {
		t.Lend = db.lend
	}
	if _, limit := conns(); !d.Embedded {
		t.turns = slots.Of(limit, spareReaders)
	}
	return t
}

// Turns returns those of handlers' transactions for a connection.
func (t *Table) Turns() *slots.Slots {
	_, limit := t.Conns()
	return slots.Of(limit, spareOthers)
}

// Transacts implements [store.Transactor]: the pool needs two connections at least.
func (t *Table) Transacts() error {
	if _, limit := t.Conns(); limit == 1 {
		return Invalid(t.Dialect.Name, "the pool has one connection, which a handler's transaction would keep from every other call; give it ten or more")
	}
	return nil
}

// Transaction implements [store.Transactor].
func (t *Table) Transaction(ctx context.Context, id store.ID, owner store.Owner) (context.Context, store.Transaction) {
	return t.Transactions.Bind(ctx, id, owner)
}

// Usage implements [store.Meter]: it counts the connections of the pool, for a serial
// writer the writes that wait for a transaction, and the transactions of handlers with
// those who wait for one.
func (t *Table) Usage() []store.Usage {
	used, limit := t.Conns()
	list := []store.Usage{{Name: "connections", Used: int64(used), Limit: int64(limit)}}
	if w, ok := t.Writer.(*serial); ok {
		list = append(list, store.Usage{Name: "writes", Waiting: int64(w.queue.Waiting())})
	}
	return append(list, t.Transactions.Usage()...)
}

// Writes never take spareReaders connections of the pool: while the others wait for the
// server to confirm a commit, replays find one. Handlers' transactions never take
// spareOthers: claims, renewals and replays always find one.
const (
	spareReaders = 1
	spareOthers  = 2
)

// maxTries bounds how often an operation that lost a race starts again.
const maxTries = 8

// Write executes an operation that writes, and starts it again while it loses races.
func (t *Table) Write(ctx context.Context, op string, f func(context.Context, Conn) error) error {
	for try := 1; ; try++ {
		err := t.write(ctx, op, f)
		if !errors.Is(err, ErrLostRace) || try == maxTries || try > 1 && !pause(ctx, try) {
			return t.Dialect.Fail(op, err)
		}
	}
}

// write executes an operation that writes once, when a connection is its turn.
func (t *Table) write(ctx context.Context, op string, f func(context.Context, Conn) error) error {
	if start := time.Now(); t.turns.Take(ctx) != nil {
		return NoConnection(t.Dialect.Name, op, time.Since(start), t.turns.Limit, t.turns.Limit)
	}
	defer t.turns.Release()
	err := t.Writer.Write(ctx, op, f)
	if errors.Is(err, store.ErrNotReplicated) || errors.Is(err, store.ErrUnknown) {
		t.unconfirmed.Store(true)
	}
	return err
}

// Read executes a read outside of the transactions of attempts. If its connection turns
// out to be useless, it closes it.
func (t *Table) Read(ctx context.Context, op string, f func(context.Context, Conn) error) error {
	if t.Dialect.Embedded { // readers do not wait for the writer
		var result error
		err := t.db.with(ctx, op, func(on connection) bool {
			rest := context.WithoutCancel(ctx)
			if result = t.Dialect.start(rest, on, "BEGIN"); result == nil { // it fails in a transaction
				result = f(ctx, on)
			}
			return on.execute(rest, "ROLLBACK") != nil || t.Dialect.isBroken(result)
		})
		return t.Dialect.Fail(op, cmp.Or(err, result))
	}
	return t.Writer.Write(ctx, op, f)
}

// lookAlone is look outside of a write. Where it locks no row, it finds no fault of the
// session if there is none.
func (t *Table) lookAlone(ctx context.Context, op string, id store.ID) (found *row, err error) {
	statement := t.statements.look
	if t.Dialect.Embedded { // without the row that stands in for none
		statement = t.statements.wait
	}
	err = t.Read(ctx, op, func(ctx context.Context, on Conn) (err error) {
		found, err = t.query(ctx, on, statement, id, false)
		return err
	})
	return found, err
}

// look reads the record of id. The clock of this host is read before the row: see
// [Seen].
func (t *Table) look(ctx context.Context, on Conn, id store.ID) (*row, error) {
	return t.query(ctx, on, t.statements.look, id, false)
}

// lookTwice is look for an operation that is refused if the record has ended. In that
// case it looks again, after waiting for those who are writing the record.
func (t *Table) lookTwice(ctx context.Context, on Conn, id store.ID) (*row, error) {
	found, err := t.look(ctx, on, id)
	if err != nil || !found.Found || found.seen() || t.Dialect.Embedded {
		return found, err
	}
	return t.query(ctx, on, t.statements.wait, id, false)
}

// lookBehind is lookTwice for the release of a claim whose caller may not have waited for
// its answer: it looks again if the record is not the owner's, after waiting for a claim
// that is writing it. Where a query does not wait for one that inserts the row, an
// emptied row that is inserted instead does.
func (t *Table) lookBehind(ctx context.Context, on Conn, id store.ID, owner store.Owner) (*row, error) {
	found, err := t.lookTwice(ctx, on, id)
	if err != nil || t.Dialect.Embedded || found.Found && bytes.Equal(found.Owner, owner[:]) {
		return found, err
	}
	if t.Dialect.Unseen && !found.Found {
		if _, err := on.Exec(ctx, t.statements.await, append(t.emptied(found), id[:], found.At)...); err != nil {
			return nil, err
		}
		return t.look(ctx, on, id)
	}
	return t.query(ctx, on, t.statements.wait, id, false)
}

// lookFree is lookTwice for one record of many: it does not wait for those who are
// writing the record, and reports whether it is locked.
func (t *Table) lookFree(ctx context.Context, on Conn, id store.ID) (found *row, locked bool, err error) {
	if !t.Dialect.Embedded {
		if found, err = t.query(ctx, on, t.statements.free, id, false); err != nil || found.Found {
			return found, false, err
		}
	}
	found, err = t.look(ctx, on, id)
	return found, err == nil && found.Found && !t.Dialect.Embedded, err
}

// hold is look in the transaction of a handler. It locks the row, once no other
// transaction writes it, so that decisions about it stay the same until the end.
func (t *Table) hold(ctx context.Context, on Conn, id store.ID) (*row, error) {
	found, err := t.query(ctx, on, t.statements.hold, id, false)
	if err == nil {
		found.until = math.MaxInt64
	}
	return found, err
}

func (t *Table) query(ctx context.Context, on Conn, statement string, id store.ID, detailed bool) (*row, error) {
	at := time.Now().UnixMicro()
	var found row
	err := on.Query(ctx, statement, func(r Row) error { return found.scan(r, detailed, at) }, id[:])
	if err != nil {
		return nil, err
	}
	found.id = id
	return &found, nil
}

// lookFor is lookTwice for an operation of an owner. It returns nil if there is no record
// or only an expired one, and an error if the record is unreadable.
func (t *Table) lookFor(ctx context.Context, on Conn, op string, id store.ID) (*row, error) {
	found, err := t.lookTwice(ctx, on, id)
	return t.judge(op, found, err)
}

// judge returns the row that was found if an owner can end it: see lookFor.
func (t *Table) judge(op string, found *row, err error) (*row, error) {
	switch {
	case err != nil:
		return nil, err
	case found.Found && !found.Readable():
		return nil, corrupt(t.Dialect.Name, op)
	case !found.seen():
		return nil, nil
	}
	return found, nil
}

// change writes the row that was read. The error is ErrLostRace if it was changed since.
func (t *Table) change(ctx context.Context, on Conn, found *row, statement string, args ...any) error {
	args = append(args, found.id[:], found.fence, found.revision)
	if t.Dialect.Late != "" {
		args = append(args, found.until)
	}
	n, err := on.Exec(ctx, statement, args...)
	if err == nil && n != 1 {
		err = ErrLostRace
	}
	return err
}

// forget makes the ID of the row that was read new. The row stays for a while, with its
// fence: otherwise, a claim that read the clock before the record was written, or a clock
// that stands or was set back, could insert one with a fence that is not higher.
func (t *Table) forget(ctx context.Context, on Conn, found *row) error {
	return t.change(ctx, on, found, t.statements.empty, t.emptied(found)...)
}

// emptied returns the owner, the fingerprint and the due_at of an emptied row.
func (t *Table) emptied(found *row) []any {
	return []any{make([]byte, len(store.Owner{})), make([]byte, len(store.Fingerprint{})), found.At + forgottenFor}
}

// forgottenFor is longer than a claim may take, in microseconds.
const forgottenFor = int64(time.Minute / time.Microsecond)

// Lost is the error of an operation of an owner that has lost its record. db is the name
// of the database.
func Lost(db, op string) error {
	return fmt.Errorf("%w: %s: %s: another owner has the record, or there is none", store.ErrLeaseLost, db, op)
}

// Invalid is the error for an argument of the caller. db is the name of the database.
func Invalid(db, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", store.ErrInvalid, db, fmt.Sprintf(format, args...))
}
