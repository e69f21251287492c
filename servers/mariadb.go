package servers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mariadbURLEnv names the server that tests share, as a URL such as
// mysql://root@127.0.0.1:3306.
const mariadbURLEnv = "REPRISE_TEST_MARIADB_URL"

// MariaDBServer is one server of MariaDB 10.6 or newer. Those that are started here let
// root in without a password on the loopback interface.
type MariaDBServer struct {
	addr, url string
	data      string // its data directory
	control
}

var sharedMariaDB shared[*MariaDBServer]

// SharedMariaDB returns the server that all tests of this process share: the one that the
// environment names, or else one that was started for the process. Each test uses its own
// database and changes no settings.
func SharedMariaDB(tb testing.TB) *MariaDBServer {
	tb.Helper()
	s, err := sharedMariaDB.get(func(c cleaner) (*MariaDBServer, error) {
		if raw := os.Getenv(mariadbURLEnv); raw != "" {
			return &MariaDBServer{url: raw}, nil
		}
		return startMariaDB(c, nil)
	})
	must(tb, err)
	return s
}

// StartMariaDB starts a server for the test, with settings such as "max-connections=20".
// It survives its own crash, not the machine's.
func StartMariaDB(tb testing.TB, settings ...string) *MariaDBServer {
	tb.Helper()
	s, err := startMariaDB(tb, settings)
	must(tb, err)
	return s
}

// URL returns the server's mysql:// URL: of root, if it was started here.
func (s *MariaDBServer) URL() string { return s.url }

// Addr returns the host:port of a server that was started here.
func (s *MariaDBServer) Addr() string { return s.addr }

// mariadbPrograms are the programs of one installation, and the account that runs them.
type mariadbPrograms struct {
	server, install string
	as              *account
}

var mariadbVersion = regexp.MustCompile(`Ver (\d+)\.(\d+)\.`)

// findMariaDB looks for an installation that is new enough.
func findMariaDB(ctx context.Context) (*mariadbPrograms, error) {
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	p := &mariadbPrograms{as: as}
	old := ""
	for name, to := range map[string]*string{"mariadbd": &p.server, "mariadb-install-db": &p.install} {
		for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/bin") {
			if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
				*to = path
				break
			}
		}
	}
	if p.server != "" && p.install != "" {
		out, err := run(ctx, as, p.server, "--version")
		if err != nil {
			return nil, err
		}
		if v := mariadbVersion.FindStringSubmatch(out); v != nil {
			major, _ := strconv.Atoi(v[1])
			minor, _ := strconv.Atoi(v[2])
			if major > 10 || major == 10 && minor >= 6 {
				return p, nil
			}
		}
		old = strings.TrimSpace(out) + " is too old; "
	}
	return nil, &missingError{nameMariaDB, old + "no mariadbd 10.6 or newer: install the package mariadb-server, " +
		"or name a server in " + mariadbURLEnv + " for the tests that share one"}
}

// mariadbTemplate is an initialised data directory that the servers of this process are
// copies of.
var mariadbTemplate shared[string]

// initialise returns the template.
func (p *mariadbPrograms) initialise(ctx context.Context) (string, error) {
	return mariadbTemplate.get(func(c cleaner) (string, error) {
		dir, err := scratch(c, p.as)
		if err != nil {
			return "", err
		}
		data := filepath.Join(dir, "data")
		_, err = run(ctx, p.as, p.install, "--no-defaults", "--datadir="+data, mariadbTemporary+dir, "--auth-root-authentication-method=normal",
			"--skip-test-db", "--skip-name-resolve", mariadbLogSize)
		return data, err
	})
}

const mariadbLogSize = "--innodb-log-file-size=16M"

// mariadbTemporary is for the folder of temporary tables: a server that starts deletes
// those of all others in it.
const mariadbTemporary = "--tmpdir="

// startMariaDB starts a server.
func startMariaDB(c cleaner, settings []string) (*MariaDBServer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p, err := findMariaDB(ctx)
	if err != nil {
		return nil, err
	}
	template, err := p.initialise(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := scratch(c, p.as)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if _, err := run(ctx, p.as, "cp", "-Rp", template, data); err != nil {
		return nil, err
	}
	return onFreePort(func(port int) (*MariaDBServer, error) {
		args := []string{
			"--no-defaults", "--datadir=" + data, mariadbTemporary + dir, "--bind-address=" + loopback, "--port=" + strconv.Itoa(port), "--skip-name-resolve",
			"--socket=" + filepath.Join(data, "socket"), "--pid-file=" + filepath.Join(data, "pid"), "--max-connections=500",
			"--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", mariadbLogSize,
		}
		for _, s := range settings {
			args = append(args, "--"+s)
		}
		s := &MariaDBServer{
			addr: address(port), url: "mysql://root@" + address(port), data: data,
			control: control{process: &process{path: p.server, args: args, dir: dir, as: p.as}},
		}
		err := s.serve(c, s.answers)
		return s, err
	})
}

// answers returns nil when the server answers: it has written its process id by then,
// which another server that took the port has not.
func (s *MariaDBServer) answers(context.Context) error {
	b, err := os.ReadFile(filepath.Join(s.data, "pid"))
	if err != nil {
		return err
	}
	if pid := strconv.Itoa(s.process.pid()); strings.TrimSpace(string(b)) != pid {
		return fmt.Errorf("process %q wrote the file of %s", b, pid)
	}
	return mariadbGreets(s.addr)
}

// mariadbGreets reads the packet with which a server begins: its length in three bytes,
// its number, then 10 for the version of the protocol, or 255 for an error.
func mariadbGreets(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second) //nolint:noctx // bounded
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	var head [5]byte
	if _, err := io.ReadFull(bufio.NewReader(conn), head[:]); err != nil {
		return err
	}
	if head[4] != 10 {
		return fmt.Errorf("the server at %s refuses connections", addr)
	}
	return nil
}
