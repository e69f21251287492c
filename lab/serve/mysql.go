package serve

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	_ "github.com/go-sql-driver/mysql" // the driver

	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// OpenMySQL opens the database of a URL such as mysql://user:password@host:port/name,
// whose parameters are those of the driver, with up to conns connections, or any number
// for 0.
func OpenMySQL(raw string, conns int) (*sql.DB, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "mysql" || u.Host == "" {
		return nil, errors.New("want mysql://user:password@host:port/database") // it may hold a password
	}
	password, _ := u.User.Password()
	values := u.Query()
	if !values.Has("interpolateParams") {
		values.Set("interpolateParams", "true") // one round trip a statement
	}
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/%s?%s", u.User.Username(), password, u.Host, strings.TrimPrefix(u.Path, "/"), values.Encode()))
	if err == nil {
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(cmp.Or(conns, mostIdle)) // else database/sql keeps two, and opens and closes the others all the time
	}
	return db, err
}

const mostIdle = 16

// openMySQL opens the store in MariaDB or MySQL. Effects are in the same database.
func openMySQL(ctx context.Context, b *Backend, o StoreOptions) error {
	c := reprisemysql.Config{TxTimeout: o.TxTimeout, PurgeEvery: -1} // Options.Purge says when to purge, for every store
	if o.MySQLURL == "" {
		return errors.New("needs -mysql-url")
	}
	db, err := OpenMySQL(o.MySQLURL, o.Pool)
	if err != nil {
		return fmt.Errorf("-mysql-url: %w", err)
	}
	b.closers = append(b.closers, func() { _ = db.Close() })
	if err := reprisemysql.Migrate(ctx, db, c); err != nil {
		return err
	}
	const table = "CREATE TABLE IF NOT EXISTS reprise_effects (op VARBINARY(255) NOT NULL, attempt INT NOT NULL, owner VARBINARY(16), at BIGINT NOT NULL)"
	if _, err := db.ExecContext(ctx, table); err != nil {
		return fmt.Errorf("create the table of effects: %w", err)
	}
	b.Effect = sqlEffect(db, reprisemysql.Tx, "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))")
	b.Store, err = reprisemysql.Open(ctx, db, c)
	return err
}
