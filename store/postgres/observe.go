package reprisepg

import (
	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// ObserveNotices makes the stores notice when the server gave up waiting for its
// synchronous standby. Call it before a pool is made from c:
//
//	config, err := pgxpool.ParseConfig(url)
//	reprisepg.ObserveNotices(config.ConnConfig)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//
// or, with database/sql, before stdlib.OpenDB or stdlib.RegisterConnConfig:
//
//	config, err := pgx.ParseConfig(url)
//	reprisepg.ObserveNotices(config)
//	db := stdlib.OpenDB(*config)
//
// PostgreSQL reports such a commit as a success with a warning, and pgx hands warnings
// only to the configuration of the connection. Without ObserveNotices, a record that a
// failover would lose looks as safe as any other; with it, the operation fails with
// ErrNotReplicated and is repeated. Servers without synchronous replication do not need
// it. It keeps the OnNotice and AfterConnect of c.
func ObserveNotices(c *pgx.ConnConfig) { wire.ObserveNotices(c) }
