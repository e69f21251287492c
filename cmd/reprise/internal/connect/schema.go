package connect

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// Schema is the schema of a store in a database.
type Schema struct {
	Migrations []store.Migration // all of them
	Version    func(ctx context.Context) (int, error)
	Migrate    func(ctx context.Context) error
}

// Migrations returns the migrations for the settings, of PostgreSQL unless they name
// another database. It is nil for a store without a schema.
func Migrations(s *Settings) ([]store.Migration, error) {
	kind := Postgres
	if s.URL != "" {
		var err error
		if kind, err = KindOf(s.URL); err != nil {
			return nil, err
		}
	}
	switch kind {
	case Postgres:
		return reprisepg.Migrations(reprisepg.Config{Schema: s.Schema, Table: s.Table})
	case MySQL:
		return reprisemysql.Migrations(reprisemysql.Config{Table: s.Table})
	case SQLite:
		return reprisesqlite.Migrations(reprisesqlite.Config{Table: s.Table})
	default: // it has no table
		return nil, nil
	}
}
