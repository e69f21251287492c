// Package reprisemysql keeps idempotency records in MariaDB 10.6 or newer, and in MySQL
// 8.0 or newer, through a *sql.DB with any driver whose methods have contexts.
//
//	db, err := sql.Open("mysql", "shop:secret@tcp(10.0.0.5:3306)/shop?interpolateParams=true")
//	…
//	err = reprisemysql.Migrate(ctx, db, reprisemysql.Config{})
//	…
//	store, err := reprisemysql.Open(ctx, db, reprisemysql.Config{})
//
// Two processes that share a table share its keys: at most one attempt at a time holds
// the lease of a key, by the clock of the server. With a transactional policy the effects
// of a handler, through [Tx], and its response commit together.
//
// A server that loses acknowledged commits, such as a replica that was promoted while it
// lagged behind its primary, loses claims with them, and their operations can run twice.
// docs/operate/mysql.md lists the settings, and the servers that were tested.
package reprisemysql
