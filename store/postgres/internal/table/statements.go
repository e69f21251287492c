package table

import (
	"embed"

	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql: the operations that requests and maintenance
// execute most, which PostgreSQL has in its own way.
type statements struct {
	claimInsert, claimLook, claims *wire.Statement
	completeOwn, completes         *wire.Statement

	renew, purge     string
	others, unpurged string
}

func newStatements(n *Names) statements {
	load := func(file string) string { return n.Load(sqlFiles, file) }
	prepared := func(file string) *wire.Statement { return n.Prepared(sqlFiles, file) }
	return statements{
		claimInsert: prepared("claim_insert"), claimLook: prepared("claim_look"), claims: prepared("claims"),
		completeOwn: prepared("complete_own"), completes: prepared("completes"),
		renew: load("renew"), purge: load("purge"),
		others: load("others"), unpurged: load("unpurged"),
	}
}
