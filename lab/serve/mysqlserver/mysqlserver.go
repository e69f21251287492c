// Package mysqlserver has stores in databases of MariaDB for tests.
package mysqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// databases counts the databases of this process.
var databases atomic.Int64

// New returns the URL of a new database with the table, on a server.
func New(tb testing.TB, s *servers.MariaDBServer) string {
	tb.Helper()
	name := fmt.Sprintf("reprise_%d", databases.Add(1))
	Exec(tb, s.URL(), "CREATE OR REPLACE DATABASE "+name)
	raw := s.URL() + "/" + name
	if err := reprisemysql.Migrate(context.WithoutCancel(tb.Context()), Pool(tb, raw, 0), reprisemysql.Config{}); err != nil {
		tb.Fatal(err)
	}
	return raw
}

// Pool opens a database until the test ends.
func Pool(tb testing.TB, raw string, conns int) *sql.DB {
	tb.Helper()
	db, err := serve.OpenMySQL(raw, conns)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec executes a statement over a new connection.
func Exec(tb testing.TB, raw, statement string, args ...any) {
	tb.Helper()
	db, err := serve.OpenMySQL(raw, 1)
	if err == nil {
		defer db.Close()
		_, err = db.ExecContext(context.WithoutCancel(tb.Context()), statement, args...)
	}
	if err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// Store returns the store over a database, as another process has it.
func Store(tb testing.TB, raw string) *reprisemysql.Store {
	tb.Helper()
	st, err := reprisemysql.New(Pool(tb, raw, 0), reprisemysql.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}
