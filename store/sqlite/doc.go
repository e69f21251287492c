// Package reprisesqlite keeps idempotency records in SQLite.
package reprisesqlite
