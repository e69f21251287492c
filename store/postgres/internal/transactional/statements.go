package transactional

import (
	"embed"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

//go:embed sql
var sqlFiles embed.FS

// statements are the texts of sql/*.sql that only the transactional store uses.
type statements struct {
	begin, open, limit, keep, replace, same, locked, commit, rollback, waiting *wire.Statement

	// For findCommit.
	beginLook, waitForLock, takeLock, committed *wire.Statement

	// For an unknown outcome.
	hold, unhold, unknown *wire.Statement
}

func newStatements(n *table.Names, isolation pgx.TxIsoLevel) statements {
	prepared := func(file string) *wire.Statement { return n.Prepared(sqlFiles, file) }
	return statements{
		begin: wire.NewStatement(beginSQL(isolation)), commit: wire.NewStatement("COMMIT"), rollback: wire.NewStatement("ROLLBACK"),
		open: prepared("open"), limit: prepared("limit"), keep: prepared("keep"), replace: prepared("replace"),
		same: prepared("same"), locked: prepared("locked"), waiting: prepared("waiting"),
		beginLook: wire.NewStatement(beginSQL(pgx.ReadCommitted)), waitForLock: prepared("wait_for_lock"),
		takeLock: prepared("take_lock"), committed: prepared("committed"),
		hold: wire.NewStatement("SELECT pg_advisory_lock($1::bigint)"), unhold: wire.NewStatement("SELECT pg_advisory_unlock($1::bigint)"),
		unknown: prepared("unknown"),
	}
}

// beginSQL is the statement that begins a transaction.
func beginSQL(isolation pgx.TxIsoLevel) string {
	return "BEGIN ISOLATION LEVEL " + string(isolation) + " READ WRITE"
}
