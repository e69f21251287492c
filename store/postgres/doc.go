// Package reprisepg keeps idempotency records in PostgreSQL 15 or later, through a pgx
// pool or a *sql.DB over pgx's driver. It has two stores over one table:
//
//   - [New] gives the leased store. A claim is one statement that commits at once, and a
//     lease says how long the claim holds without renewal. It serves handlers with any
//     kind of effects.
//   - [NewTransactional] gives the transactional store. Each attempt runs in one
//     transaction of the database; its handler finds it by [Tx], and its writes there
//     commit together with the stored response or not at all. That is exactly-once for
//     effects in this database, over any number of retries, crashes and pauses.
//
// Neither store makes effects outside the database exactly-once; no store can. The
// transactional store holds a connection and a transaction for as long as a handler
// runs, and the size of the pool bounds its attempts.
//
//	pool, err := pgxpool.New(ctx, url)
//	err = reprisepg.Migrate(ctx, pool, reprisepg.Config{})
//	store, err := reprisepg.OpenTransactional(ctx, pool, reprisepg.Config{})
//	guard, err := protocol.New(store, protocol.Config{Required: true})
//	…
//	tx, ok := reprisepg.Tx(request.Context())
//	_, err = tx.Exec(ctx, "UPDATE accounts SET …")
//
// Every statement of the leased store is one round trip that needs no state of the
// session, so it works behind a pooler in transaction mode. docs/operate/postgres.md and
// docs/guides/transactional.md say what each store needs and costs.
//
// The tests that need a server are in lab/postgres: the store suite, exact costs,
// faults, kills and failovers.
package reprisepg
