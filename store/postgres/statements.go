package reprisepg

import (
	"embed"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql: the operations that requests and maintenance
// execute most, which PostgreSQL has in its own way, and those of handlers' transactions.
type statements struct {
	claimInsert, claimLook, claims string // these, and those of the next lines, are prepared
	completeOwn, completes         string
	limits, same, completeInTx     string

	renew, purge, uncommitted string
	others, unpurged          string
}

// The statements that begin a transaction, and commit that of a handler.
const (
	beginTx  = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	commitTx = "COMMIT"
)

func newStatements(n *names) statements {
	return statements{
		claimInsert: n.load("claim_insert"), claimLook: n.load("claim_look"), claims: n.load("claims"),
		completeOwn: n.load("complete_own"), completes: n.load("completes"),
		limits: n.load("limits"), same: n.load("same"), completeInTx: n.load("complete_in_tx"),

		renew: n.load("renew"), purge: n.load("purge"), others: n.load("others"), unpurged: n.load("unpurged"), uncommitted: n.load("uncommitted"),
	}
}
