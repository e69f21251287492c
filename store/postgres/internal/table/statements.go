package table

import (
	"embed"

	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql: what PostgreSQL does in another way than every
// database, because it is what requests and maintenance execute most.
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
