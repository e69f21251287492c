// Package handlertx has the sessions of package lazytx on PostgreSQL. A completion and
// its COMMIT are one batch: where the UPDATE of the record finds no row, it fails, and
// the transaction with it.
package handlertx

import (
	"embed"
	"strconv"

	"github.com/reprise-go/reprise/store/internal/lazytx"
	"github.com/reprise-go/reprise/store/internal/slots"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// spareConns is how many connections of the pool transactions never take: claims,
// renewals and replays always find one.
const spareConns = 2

// Transactions begins those of the handlers of one store.
type Transactions struct {
	table      *table.Table
	statements statements
	timeout    string // Options.TxTimeout, as a setting
}

// New returns the transactions of a store over t.
func New(t *table.Table) *lazytx.Transactions {
	s := &Transactions{
		table: t, statements: newStatements(&t.Names),
		timeout: strconv.FormatInt(t.Options.TxTimeout.Milliseconds(), 10) + "ms",
	}
	all := &lazytx.Transactions{Name: table.Name, Timeout: t.Options.TxTimeout, Open: s.open}
	if limit := t.Db.Use().Limit; limit > 0 {
		all.Slots = &slots.Slots{Limit: max(1, limit-spareConns)}
	}
	return all
}

//go:embed sql
var sqlFiles embed.FS

// statements are the texts that only transactions use.
type statements struct {
	begin, limits, same, complete, commit, waitForLock, again, forget *wire.Statement
}

func newStatements(n *table.Names) statements {
	prepared := func(file string) *wire.Statement { return n.Prepared(sqlFiles, file) }
	return statements{
		begin: wire.NewStatement("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"), limits: prepared("limits"), same: prepared("same"),
		complete: prepared("complete"), commit: wire.NewStatement("COMMIT"),
		waitForLock: prepared("wait_for_lock"), again: prepared("again"), forget: prepared("forget"),
	}
}
