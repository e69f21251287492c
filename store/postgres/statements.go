package reprisepg

import (
	"embed"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql: the operations that requests and maintenance
// execute most, which PostgreSQL has in its own way, and those of handlers' transactions.
type statements struct {
	claimInsert, claimLook, claims *statement
	completeOwn, completes         *statement

	begin, limits, same, completeInTx, commit *statement

	renew, purge     string
	others, unpurged string
}

func newStatements(n *names) statements {
	prepared := func(file string) *statement { return newStatement(n.load(file)) }
	return statements{
		claimInsert: prepared("claim_insert"), claimLook: prepared("claim_look"), claims: prepared("claims"),
		completeOwn: prepared("complete_own"), completes: prepared("completes"),

		begin: newStatement("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"), limits: prepared("limits"), same: prepared("same"),
		completeInTx: prepared("complete_in_tx"), commit: newStatement("COMMIT"),

		renew: n.load("renew"), purge: n.load("purge"), others: n.load("others"), unpurged: n.load("unpurged"),
	}
}
