package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// maxConns is the size of this program's pool.
const maxConns = 4

// openPostgres returns the store over a pool that has no connection yet.
func openPostgres(ctx context.Context, s *Settings) (*Store, error) {
	st := &Store{Kind: Postgres, Settings: *s, secrets: []string{s.URL}}
	c, err := pgxpool.ParseConfig(s.URL)
	if err != nil {
		return nil, errors.New("the URL of PostgreSQL is not postgres://user@host:port/database?parameters, or a setting in it or in a PG… variable is invalid")
	}
	st.secrets = append(st.secrets, c.ConnConfig.Password)
	if u, err := url.Parse(s.URL); err == nil {
		if password, ok := u.User.Password(); ok {
			st.secrets = append(st.secrets, password)
		}
	}
	// No statement is prepared by name, so this works behind every pooler.
	if !s.ServicePool && !strings.Contains(s.URL, "default_query_exec_mode") {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "reprise"
	}
	reprisepg.ObserveNotices(c.ConnConfig)
	// The pool settings in the URL are for the service; a command needs few connections.
	// Without minima a pool opens only those that are used, so one of the service's size
	// can be judged. The proxy has no minima either.
	if !s.ServicePool {
		c.MaxConns = maxConns
	}
	c.MinConns, c.MinIdleConns = 0, 0
	st.User = c.ConnConfig.User
	st.server = net.JoinHostPort(c.ConnConfig.Host, strconv.Itoa(int(c.ConnConfig.Port)))
	st.Endpoint = st.server + "/" + c.ConnConfig.Database
	st.certificates.watch(c.ConnConfig.TLSConfig)
	for _, other := range c.ConnConfig.Fallbacks {
		st.certificates.watch(other.TLSConfig)
	}

	st.Config = reprisepg.Config{Schema: s.Schema, Table: s.Table, Logger: s.logger()}
	st.Name = fmt.Sprintf("PostgreSQL %s, table %s.%s", st.Endpoint, cmp.Or(s.Schema, reprisepg.DefaultSchema), cmp.Or(s.Table, reprisepg.DefaultTable))
	pool, err := pgxpool.NewWithConfig(ctx, c) // connects when it is asked to
	if err != nil {
		return nil, st.redacted(err)
	}
	inner, err := reprisepg.New(pool, st.Config)
	if err != nil {
		pool.Close()
		return nil, st.redacted(err)
	}
	st.pool, st.Unexamined = pool, []string{"notices"}
	st.Schema = &Schema{
		Version: func(ctx context.Context) (int, error) { return reprisepg.SchemaVersion(ctx, pool, st.Config) },
		Migrate: func(ctx context.Context) error { return reprisepg.Migrate(ctx, pool, st.Config) },
	}
	if st.Schema.Migrations, err = Migrations(s); err != nil {
		return nil, st.redacted(err)
	}
	if !s.ServicePool {
		st.Unexamined = append(st.Unexamined, "statement-cache")
	}
	st.attach(inner)
	st.Prove = func(ctx context.Context) (err error) {
		_, err = reprisepg.Open(ctx, pool, st.Config)
		return err
	}
	st.Close = pool.Close
	return st, nil
}
