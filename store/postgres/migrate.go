package reprisepg

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/store/postgres/internal/table"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Migration is one step of the schema. Another migration tool may apply its SQL, which
// also records that it was applied, so that [Migrate] and Check know. It does not create
// the schema.
type Migration struct {
	Version int    // from 1, without gaps
	Name    string // such as "0001_records"
	SQL     string // several statements, to run in one transaction
	Down    string // undoes SQL, in one transaction; the first step's deletes every record
}

// Goose returns the migration as a file for goose (github.com/pressly/goose), with both
// directions. Atlas, golang-migrate and others take SQL and Down as they are.
func (m Migration) Goose() string {
	const begin, end = "-- +goose StatementBegin\n", "-- +goose StatementEnd\n"
	return "-- +goose Up\n" + begin + m.SQL + end + "\n-- +goose Down\n" + begin + m.Down + end
}

// Migrations returns every step of the schema for c, in order. The error wraps
// ErrInvalid.
func Migrations(c Config) ([]Migration, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	steps, err := table.Migrations(o)
	if err != nil {
		return nil, err
	}
	list := make([]Migration, len(steps))
	for i, s := range steps {
		list[i] = Migration{Version: s.Version, Name: s.Name, SQL: s.Up, Down: s.Down}
	}
	return list, nil
}

// Grants returns the GRANT statements for a role that runs the stores: the role can read
// and write records, and cannot change the schema. Grants quotes the role. The error
// wraps ErrInvalid.
func Grants(c Config, role string) (string, error) {
	o, err := c.options()
	if err != nil {
		return "", err
	}
	return table.Grants(o, role), nil
}

// Beginner begins a transaction: a [pgxpool.Pool], a [pgx.Conn] or a [pgx.Tx].
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Migrate brings the schema of c up to the version of this release, in one transaction,
// and creates the schema itself if it is missing. Any number of processes may call it at
// once: one does the work and the others wait. It needs a role that may create tables;
// the stores need only the rights of [Grants]. If db is a [pgx.Tx], it has to be READ
// COMMITTED.
//
// Migrate leaves a schema that is newer than this release as it is, and warns
// [Config.Logger]: a process of this release may restart while the next one is rolled
// out. If that schema lacks a function that this release calls, the error is
// ErrMisconfigured. An invalid config, or a db that is nil, is ErrInvalid.
func Migrate(ctx context.Context, db Beginner, c Config) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	if err := notNil(db); err != nil {
		return err
	}
	return table.Migrate(ctx, db, o)
}

func notNil(db Beginner) error {
	pool, isPool := db.(*pgxpool.Pool)
	conn, isConn := db.(*pgx.Conn)
	if db == nil || isPool && pool == nil || isConn && conn == nil {
		return table.Invalid("the pool or connection is nil")
	}
	return nil
}

// MigrateSQL is [Migrate] for a *sql.DB over pgx's driver.
func MigrateSQL(ctx context.Context, db *sql.DB, c Config) error {
	if db == nil {
		return table.Invalid("the *sql.DB is nil")
	}
	session, err := wire.Database{SQL: db}.Acquire(ctx, "migrate")
	if err != nil {
		return err
	}
	defer session.Release()
	return session.Do(func(conn *pgx.Conn) error { return Migrate(ctx, conn, c) })
}

// SchemaVersion returns the version of the schema of c: the Version of the last
// [Migration] that was applied. 0 means that there is none, or that this role cannot see
// it. An invalid config, or a db that is nil, is ErrInvalid.
func SchemaVersion(ctx context.Context, db Beginner, c Config) (int, error) {
	o, err := c.options()
	if err != nil {
		return 0, err
	}
	if err := notNil(db); err != nil {
		return 0, err
	}
	return table.Version(ctx, db, o)
}
