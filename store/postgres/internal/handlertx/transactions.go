// Package handlertx gives handlers a transaction of the database, which commits together
// with the completion of their attempts or not at all.
//
// The claim is that of the leased store and has been committed. The transaction begins
// when the handler asks for it, and ends with the ordinary conditional UPDATE of the
// record and COMMIT, in one batch. No row means that another attempt has the record: then
// the UPDATE fails, and with it the transaction, so that a stale owner commits nothing.
package handlertx

import (
	"context"
	"embed"
	"strconv"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// spareConns is how many connections of the pool transactions never take: claims,
// renewals and replays always find one.
const spareConns = 2

// Transactions are those of the handlers of one store.
type Transactions struct {
	table      *table.Table
	statements statements
	slots      *slots.Slots // of the pool; nil: it has no limit
	timeout    string       // Options.TxTimeout, as a setting
}

// New returns the transactions of a store over t.
func New(t *table.Table) *Transactions {
	s := &Transactions{
		table: t, statements: newStatements(&t.Names),
		timeout: strconv.FormatInt(t.Options.TxTimeout.Milliseconds(), 10) + "ms",
	}
	if limit := t.Db.Use().Limit; limit > 0 {
		s.slots = &slots.Slots{Limit: max(1, limit-spareConns)}
	}
	return s
}

// Possible returns an ErrInvalid if the pool has no room for a transaction.
func (s *Transactions) Possible() error {
	if limit := s.table.Db.Use().Limit; limit == 1 {
		return table.Invalid("the pool has one connection, which a handler's transaction would keep from every claim; give it ten or more")
	}
	return nil
}

// Usage counts the transactions that are open, and the handlers that wait for one.
func (s *Transactions) Usage() []store.Usage {
	if s.slots == nil {
		return nil
	}
	n := s.slots.Stats()
	return []store.Usage{{Name: "slots", Used: int64(n.InUse), Limit: int64(n.Slots), Waiting: int64(n.Waiting)}}
}

//go:embed sql
var sqlFiles embed.FS

// statements are the texts that only transactions use.
type statements struct {
	begin, limits, same, complete, commit, waitForLock *wire.Statement
}

func newStatements(n *table.Names) statements {
	prepared := func(file string) *wire.Statement { return n.Prepared(sqlFiles, file) }
	return statements{
		begin: wire.NewStatement("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"), limits: prepared("limits"), same: prepared("same"),
		complete: prepared("complete"), commit: wire.NewStatement("COMMIT"),
		waitForLock: prepared("wait_for_lock"),
	}
}

// Bind returns the transaction of an attempt, and the context with which its handler
// finds it.
func (s *Transactions) Bind(ctx context.Context, id store.ID, owner store.Owner) (context.Context, *Transaction) {
	t := &Transaction{all: s, id: id, owner: owner}
	t.attempt, _ = reprise.AttemptFrom(ctx)
	return context.WithValue(ctx, txKey{}, t), t
}

// txKey is the key of the transaction in the handler's context.
type txKey struct{}

// Of returns the transaction of the attempt that ctx belongs to, or nil. ctx may be the
// context of the handler's framework. An attempt inside of another one, by any engine,
// has not the transaction of that: its record would say that effects are done which the
// other may still roll back.
func Of(ctx context.Context) *Transaction {
	t, ok := ctx.Value(txKey{}).(*Transaction)
	if run, found := store.RunContext(ctx); !ok && found {
		t, ok = run.Value(txKey{}).(*Transaction)
	}
	if attempt, _ := reprise.AttemptFrom(ctx); !ok || attempt != t.attempt {
		return nil
	}
	return t
}

// deadline is when a transaction that begins now is over.
func (s *Transactions) deadline() time.Duration { return s.table.Options.TxTimeout }
