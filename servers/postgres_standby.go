package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PostgresStandby is a hot standby that streams from a primary. Once promoted it is an
// independent primary.
type PostgresStandby struct {
	*PostgresServer
	Link *Proxy // its path to the primary

	primary *PostgresServer
	name    string // its application_name, unique
}

// StartStandby starts a standby of the server for the test, and waits until it streams.
// The standby has the settings given here, not those of the primary. It is asynchronous
// until the primary waits for it:
//
//	standby := primary.StartStandby(t)
//	primary.Set(t, "synchronous_standby_names=*")
//	standby.AwaitSynchronous(t)
func (s *PostgresServer) StartStandby(tb testing.TB, settings ...string) *PostgresStandby {
	tb.Helper()
	s.own()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	p := s.programs
	dir, err := scratch(tb, p.as)
	must(tb, err)
	data := filepath.Join(dir, pgData)
	must(tb, s.backup(ctx, data))
	must(tb, writeFile(filepath.Join(data, "standby.signal"), "", p.as))

	link := StartProxy(tb, s.addr)
	host, port, _ := net.SplitHostPort(link.Addr())
	name := filepath.Base(dir)
	conninfo := fmt.Sprintf("host=%s port=%s user=%s application_name=%s", host, port, pgUser, name)
	own := append([]string{"primary_conninfo=" + conninfo, "wal_retrieve_retry_interval=100ms"}, settings...)
	server, err := p.serve(tb, dir, "", own)
	must(tb, err)
	standby := &PostgresStandby{PostgresServer: server, Link: link, primary: s, name: name}
	must(tb, standby.await(ctx, "streaming"))
	return standby
}

// backup copies the data directory of the running server, as pg_basebackup does, which
// not every installation has. All statements are one query, because a backup ends with
// its session. A file that the server removes while it is read is left out.
func (s *PostgresServer) backup(ctx context.Context, to string) error {
	shell := fmt.Sprintf(`mkdir "%[2]s" && tar -C "%[1]s" --exclude=./postmaster.pid --exclude='./pg_dynshmem/*' -cf - . | tar -C "%[2]s" -xf -`, s.data, to)
	rows, err := s.Exec(ctx, "SELECT pg_backup_start('standby', true); COPY (SELECT WHERE false) TO PROGRAM '"+
		strings.ReplaceAll(shell, "'", "''")+"'; SELECT labelfile FROM pg_backup_stop(false)")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(to, "backup_label"), rows[len(rows)-1][0], s.programs.as)
}

// writeFile writes a file that belongs to the account.
func writeFile(path, content string, owner *account) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return give(path, owner)
}

// AwaitSynchronous waits until the primary waits for the standby at each commit.
func (s *PostgresStandby) AwaitSynchronous(tb testing.TB) {
	tb.Helper()
	must(tb, s.await(tb.Context(), "streaming sync", "streaming quorum"))
}

// await waits until the primary's state of the standby, "streaming sync" for example,
// begins with one of the states.
func (s *PostgresStandby) await(ctx context.Context, states ...string) error {
	sql := "SELECT coalesce(max(state || ' ' || sync_state), 'not connected') FROM pg_stat_replication WHERE application_name = '" + s.name + "'"
	return poll(func() error {
		state, err := s.primary.value(ctx, sql)
		if err != nil {
			return err
		}
		for _, want := range states {
			if strings.HasPrefix(state, want) {
				return nil
			}
		}
		return fmt.Errorf("the standby is %s", state)
	})
}

// Promote makes the standby a primary, and waits until it takes writes. The old primary
// is not notified.
func (s *PostgresStandby) Promote(tb testing.TB) {
	tb.Helper()
	promoted, err := s.value(tb.Context(), "SELECT pg_promote(true, 60)")
	if err == nil && promoted != "t" {
		err = fmt.Errorf("the standby at %s was not promoted", s.addr)
	}
	must(tb, err)
}
