package connect

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite" // the driver

	"github.com/reprise-go/reprise/core/store"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// openMySQL returns the store over a pool that has no connection yet.
func openMySQL(s *Settings) (*Store, error) {
	wrong := errors.New("the URL of MySQL or MariaDB is not mysql://user:password@host:port/database?parameters, or a parameter in it is invalid")
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || len(u.Path) < 2 {
		return nil, wrong
	}
	host := u.Host
	if u.Port() == "" {
		host += ":3306"
	}
	c, err := mysql.ParseDSN("tcp(" + host + ")/" + u.EscapedPath()[1:] + "?" + u.RawQuery)
	if err != nil {
		return nil, wrong
	}
	c.User, c.Logger = u.User.Username(), &mysql.NopLogger{}
	c.Passwd, _ = u.User.Password()
	st := &Store{Kind: MySQL, Settings: *s, User: c.User, Endpoint: host + u.Path, server: host, secrets: []string{s.URL, c.Passwd}}
	st.certificates.watch(c.TLS)
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, wrong
	}
	db, config := sql.OpenDB(connector), reprisemysql.Config{Table: s.Table, Logger: s.logger()}
	inner, err := reprisemysql.New(db, config)
	return st.overSQL(db, inner, err, "MySQL",
		func(ctx context.Context) (int, error) { return reprisemysql.SchemaVersion(ctx, db, config) },
		func(ctx context.Context) error { return reprisemysql.Migrate(ctx, db, config) },
		func(ctx context.Context) (err error) { _, err = reprisemysql.Open(ctx, db, config); return err })
}

// openSQLite returns the store over a file, which has to exist, and is not opened yet.
func openSQLite(s *Settings) (*Store, error) {
	file, query, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(s.URL, "sqlite:"), "//"), "?")
	if file == "" {
		return nil, errors.New("the URL of SQLite is not sqlite:FILE")
	}
	db, err := sql.Open("sqlite", sqliteName(file, query))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(maxConns)
	st := &Store{Kind: SQLite, Settings: *s, Endpoint: file, Unexamined: []string{"synchronous", "read-uncommitted", "pool-size"}}
	config := reprisesqlite.Config{Table: s.Table, Logger: s.logger()}
	inner, err := reprisesqlite.New(db, config)
	return st.overSQL(db, inner, err, "SQLite",
		func(ctx context.Context) (int, error) { return reprisesqlite.SchemaVersion(ctx, db, config) },
		func(ctx context.Context) error { return reprisesqlite.Migrate(ctx, db, config) },
		func(ctx context.Context) (err error) { _, err = reprisesqlite.Open(ctx, db, config); return err })
}

// sqliteName returns the data source name of a file that has to exist.
func sqliteName(file, query string) string {
	if !strings.Contains(strings.ToLower(query), "busy_timeout") {
		query += "&_pragma=busy_timeout(5000)"
	}
	return "file:" + file + "?" + query + "&mode=rw"
}

// overSQL completes a store over database/sql, unless err says that there is none.
func (s *Store) overSQL(db *sql.DB, inner store.Store, err error, product string,
	version func(context.Context) (int, error), migrate, prove func(context.Context) error,
) (*Store, error) {
	if err == nil {
		s.Schema = &Schema{Version: version, Migrate: migrate}
		s.Schema.Migrations, err = Migrations(&s.Settings)
	}
	if err != nil {
		_ = db.Close()
		return nil, s.redacted(err)
	}
	s.Name = product + " " + s.Endpoint + ", table " + cmp.Or(s.Settings.Table, reprisesqlite.DefaultTable)
	s.attach(inner)
	s.Prove = prove
	s.Close = func() { _ = db.Close() }
	return s, nil
}
