// Package reprisemysql keeps idempotency records in MariaDB 10.6 or newer, and in MySQL
// 8.0 or newer, through a *sql.DB with any driver.
//
//	db, err := sql.Open("mysql", "shop:secret@tcp(10.0.0.5:3306)/shop?interpolateParams=true")
//	…
//	err = reprisemysql.Migrate(ctx, db, reprisemysql.Config{})
//	…
//	store, err := reprisemysql.Open(ctx, db, reprisemysql.Config{})
//
// Two processes that share a table share its keys. At most one attempt at a time holds
// the lease of a key, by the clock of the server ([Store]); or the effects of an attempt
// and its response commit together ([TransactionalStore]).
//
// A server that loses acknowledged commits, such as a replica that was promoted behind
// its primary, forgets claims with them, and their keys can run twice.
// docs/operate/mysql.md has the settings, and which servers were tested.
package reprisemysql
