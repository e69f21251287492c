package servers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
)

const (
	postgresURLEnv = "REPRISE_TEST_POSTGRES_URL"
	postgresBinEnv = "REPRISE_TEST_POSTGRES_BIN" // the directory of the programs to start
)

// PostgresServer is one server of PostgreSQL 15 or newer, a primary or a standby. The
// ones that are started here trust every user on the loopback interface.
type PostgresServer struct {
	addr     string
	url      string
	programs *pgPrograms
	data     string // its data directory
	control
}

var sharedPostgres shared[*PostgresServer]

// SharedPostgres returns the server that all tests of this process share: the one that
// the environment names, or else one that was started for the process. Each test uses its
// own schema and changes no settings.
func SharedPostgres(tb testing.TB) *PostgresServer {
	tb.Helper()
	s, err := sharedPostgres.get(func(c cleaner) (*PostgresServer, error) {
		if raw := os.Getenv(postgresURLEnv); raw != "" {
			return externalPostgres(raw)
		}
		return startPostgres(c, "", nil)
	})
	must(tb, err)
	return s
}

// StartPostgres starts a server for the test, with settings such as "max_connections=20".
// It does not sync its files to the disk unless they say so: it survives its own crash,
// not the machine's.
func StartPostgres(tb testing.TB, settings ...string) *PostgresServer {
	tb.Helper()
	s, err := startPostgres(tb, "", settings)
	must(tb, err)
	return s
}

func externalPostgres(raw string) (*PostgresServer, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") || u.Host == "" {
		return nil, fmt.Errorf("%s: want postgres://user:password@host:port/database", postgresURLEnv) // it may hold a password
	}
	addr := u.Host
	if u.Port() == "" {
		addr += ":5432"
	}
	return &PostgresServer{addr: addr, url: raw}, nil
}

// Addr returns the server's host:port.
func (s *PostgresServer) Addr() string { return s.addr }

// URL returns the server's postgres:// URL: of a superuser, if it was started here.
func (s *PostgresServer) URL() string { return s.url }

// Exec runs SQL statements as one simple query over a new connection, and returns the
// rows of all of them as text, with NULL as an empty string. It is for a test's set-up
// and its witness, on a server that was started here.
func (s *PostgresServer) Exec(ctx context.Context, sql string) ([][]string, error) {
	s.own()
	rows, err := pgQuery(ctx, s.addr, pgUser, sql)
	if err != nil {
		return nil, fmt.Errorf("postgres at %s: %w", s.addr, err)
	}
	return rows, nil
}

// value returns the first column of the first row.
func (s *PostgresServer) value(ctx context.Context, sql string) (string, error) {
	rows, err := s.Exec(ctx, sql)
	if err != nil {
		return "", err
	}
	if len(rows) == 0 || len(rows[0]) == 0 {
		return "", fmt.Errorf("no row from %s", sql)
	}
	return rows[0][0], nil
}

// Set changes settings such as "synchronous_standby_names=*" of the running server, for
// connections made after it returned; older ones follow soon. An empty value is the
// default.
func (s *PostgresServer) Set(tb testing.TB, settings ...string) {
	tb.Helper()
	must(tb, s.set(tb.Context(), settings))
}

func (s *PostgresServer) set(ctx context.Context, settings []string) error {
	before, err := s.value(ctx, "SELECT pg_conf_load_time()")
	if err != nil {
		return err
	}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		sql := fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", name, strings.ReplaceAll(value, "'", "''"))
		if value == "" {
			sql = "ALTER SYSTEM RESET " + name
		}
		if _, err := s.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if _, err := s.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	return poll(func() error {
		after, err := s.value(ctx, "SELECT pg_conf_load_time()")
		if err == nil && after == before {
			err = errors.New("settings not loaded")
		}
		return err
	})
}

// Crash ends the server at once without a checkpoint, and its connections with the
// server's own message about it. It recovers from its log at the next start. See Kill for
// an end without a message.
func (s *PostgresServer) Crash(tb testing.TB) {
	tb.Helper()
	must(tb, s.own().end(sigImmediate))
}

// answers returns nil when the server on this data directory answers, and not another on
// its port.
func (s *PostgresServer) answers(ctx context.Context) error {
	data, err := s.value(ctx, "SHOW data_directory")
	if err == nil && data != s.data {
		err = fmt.Errorf("the server of %s answers on %s", data, s.addr)
	}
	return err
}
