// Package reprisepg keeps idempotency records in PostgreSQL 15 or later, through a pgx
// pool or a *sql.DB over pgx's driver. A claim is one statement that commits at once, and
// a lease says how long it holds without renewal.
//
// A policy that is Transactional gives its handlers a transaction of the database, by
// [Tx]. Their writes there commit together with the stored response or not at all. That
// is exactly-once for effects in this database, over any number of retries, crashes and
// pauses; no store can make it so for effects outside of it.
//
//	pool, err := pgxpool.New(ctx, url)
//	err = reprisepg.Migrate(ctx, pool, reprisepg.Config{})
//	store, err := reprisepg.Open(ctx, pool, reprisepg.Config{})
//	guard, err := protocol.New(store, protocol.Config{Required: true, Transactional: true})
//	…
//	tx, err := reprisepg.Tx(request.Context())
//	_, err = tx.Exec(ctx, "UPDATE accounts SET …")
//
// Every statement is one round trip that needs no state of the session outside of a
// handler's transaction, so the store works behind a pooler in transaction mode.
// docs/operate/postgres.md and docs/guides/transactional.md say what it needs and costs.
//
// The tests that need a server are in lab/postgres: the store suite, exact costs,
// faults, kills and failovers.
package reprisepg
