package leased

import (
	"embed"

	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql that only the store itself uses.
type statements struct {
	claimNew, claimParsed, rewrite *wire.Statement
	claims, completes              *wire.Statement
	claimWaited                    string
	release, waitForClaim          string
}

func newStatements(n *table.Names) statements {
	load := func(file string) string { return n.Load(sqlFiles, file) }
	prepared := func(file string) *wire.Statement { return n.Prepared(sqlFiles, file) }
	return statements{
		claimNew: prepared("claim_new"), claimParsed: prepared("claim_parsed"), rewrite: prepared("rewrite"),
		claims: prepared("claims"), completes: prepared("completes"),
		claimWaited: load("claim_waited"),
		release:     load("release"), waitForClaim: load("wait_for_claim"),
	}
}
