package reprisepg

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// ObserveNotices lets the stores see, on the connections of a pool that is made from c
// afterwards, that the server gave up waiting for its synchronous standby. PostgreSQL
// reports such a commit as a success with a warning, and pgx hands warnings only to the
// configuration of the connection; unseen, a record that a failover loses looks as safe
// as any. With it the operation fails with ErrNotReplicated and is repeated. Servers
// without synchronous replication do not need it. It keeps the OnNotice and AfterConnect
// of c.
func ObserveNotices(c *pgxpool.Config) { wire.ObserveNotices(c) }
