package servers

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// PgBouncer is a connection pool in front of a PostgreSQL server.
type PgBouncer struct {
	addr string
	url  string
	control
}

// StartPgBouncer starts PgBouncer in front of the server for the test, with settings such
// as "pool_mode=session". By default it pools transactions over at most 20 connections.
// All clients become the superuser.
func (s *PostgresServer) StartPgBouncer(tb testing.TB, settings ...string) *PgBouncer {
	tb.Helper()
	if s.process == nil {
		tb.Skip("PgBouncer logs in to a server that the test started, and REPRISE_TEST_POSTGRES_URL names another")
	}
	path, err := findPgBouncer()
	must(tb, err)
	as, err := unprivileged()
	must(tb, err)
	dir, err := scratch(tb, as)
	must(tb, err)
	file := filepath.Join(dir, "pgbouncer.ini")
	b, err := onFreePort(func(port int) (*PgBouncer, error) {
		if err := writeFile(file, pgBouncerConfig(s.addr, port, settings), as); err != nil {
			return nil, err
		}
		b := &PgBouncer{
			addr: address(port), url: pgURL(port),
			control: control{process: &process{path: path, args: []string{file}, dir: dir, as: as}},
		}
		err := b.serve(tb, b.answers)
		return b, err
	})
	must(tb, err)
	return b
}

// findPgBouncer looks on PATH and in the directories of system programs, which not every
// PATH has.
func findPgBouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", &missingError{namePgBouncer, "no pgbouncer on PATH or in /usr/sbin: install the package pgbouncer"}
}

// pgBouncerConfig returns the configuration file. Later lines win, so the settings come
// last.
func pgBouncerConfig(server string, port int, settings []string) string {
	host, serverPort, _ := net.SplitHostPort(server)
	lines := []string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s user=%s", host, serverPort, pgUser),
		"[pgbouncer]",
		"listen_addr = " + loopback,
		"listen_port = " + strconv.Itoa(port),
		"unix_socket_dir =",
		"auth_type = any",
		"pool_mode = transaction",
		"default_pool_size = 20",
		"max_client_conn = 500",
		"server_login_retry = 1",
		"ignore_startup_parameters = extra_float_digits",
	}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		lines = append(lines, name+" = "+value)
	}
	return strings.Join(lines, "\n") + "\n"
}

// Addr returns the pool's host:port.
func (b *PgBouncer) Addr() string { return b.addr }

// URL returns the pool's postgres:// URL, of a superuser.
func (b *PgBouncer) URL() string { return b.url }

// Exec is Exec of the server, through the pool.
func (b *PgBouncer) Exec(ctx context.Context, sql string) ([][]string, error) {
	rows, err := pgQuery(ctx, b.addr, pgUser, sql)
	if err != nil {
		return nil, fmt.Errorf("pgbouncer at %s: %w", b.addr, err)
	}
	return rows, nil
}

// answers returns nil when a query passes through the pool.
func (b *PgBouncer) answers(ctx context.Context) error {
	_, err := b.Exec(ctx, "SELECT 1")
	return err
}
