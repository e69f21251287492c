package table

import (
	"embed"

	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql that requests and operators use.
type statements struct {
	ClaimLook, CompleteOwn, Again *wire.Statement

	renew                           string
	purge, purgeable, inspect, list string
	resolve, forget                 string
	unknown                         string
	others, unpurged                string
}

func newStatements(n *Names) statements {
	load := func(file string) string { return n.Load(sqlFiles, file) }
	prepared := func(file string) *wire.Statement { return n.Prepared(sqlFiles, file) }
	return statements{
		ClaimLook:   prepared("claim_look"),
		CompleteOwn: prepared("complete_own"), Again: prepared("again"),
		renew: load("renew"),
		purge: load("purge"), purgeable: load("count_purgeable"), inspect: load("inspect"), list: load("list"),
		resolve: load("resolve"), forget: load("forget"),
		unknown: load("unknown"),
		others:  load("others"), unpurged: load("unpurged"),
	}
}
