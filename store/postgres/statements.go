package reprisepg

import (
	"embed"

	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql: the operations that requests and maintenance
// execute most, which PostgreSQL has in its own way, and those of handlers' transactions.
type statements struct {
	claimInsert, claimLook, claims *wire.Statement
	completeOwn, completes         *wire.Statement

	begin, limits, same, completeInTx, commit *wire.Statement
	waitForLock, again, forget                *wire.Statement

	renew, purge     string
	others, unpurged string
}

func newStatements(n *names) statements {
	prepared := func(file string) *wire.Statement { return wire.NewStatement(n.load(file)) }
	return statements{
		claimInsert: prepared("claim_insert"), claimLook: prepared("claim_look"), claims: prepared("claims"),
		completeOwn: prepared("complete_own"), completes: prepared("completes"),

		begin: wire.NewStatement("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"), limits: prepared("limits"), same: prepared("same"),
		completeInTx: prepared("complete_in_tx"), commit: wire.NewStatement("COMMIT"),
		waitForLock: prepared("wait_for_lock"), again: prepared("again"), forget: prepared("forget"),

		renew: n.load("renew"), purge: n.load("purge"), others: n.load("others"), unpurged: n.load("unpurged"),
	}
}
