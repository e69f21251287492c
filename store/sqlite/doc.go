// Package reprisesqlite keeps idempotency records in a file of SQLite 3.35 or newer,
// through a *sql.DB with any driver whose methods have contexts, such as
// modernc.org/sqlite or github.com/mattn/go-sqlite3. It is for services on one host: the
// records outlive the process, and no server is needed.
//
// With a transactional policy the effects of a handler, through [Tx], and its response
// commit together: exactly once, over any number of retries, crashes and pauses. No store
// can do that for effects outside of its file. The clock is that of the host: a step
// forward ends leases early.
//
//	db, err := sql.Open("sqlite", "file:shop.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
//	err = reprisesqlite.Migrate(ctx, db, reprisesqlite.Config{})
//	store, err := reprisesqlite.Open(ctx, db, reprisesqlite.Config{})
//	guard, err := protocol.New(store, protocol.Config{Required: true})
//
// docs/operate/sqlite.md has the settings and the costs.
//
// The tests that need a driver are in lab/sqlite: the store suite on two of them, kills,
// power failures and full disks.
package reprisesqlite
