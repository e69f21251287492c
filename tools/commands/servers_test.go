package commands_test

import (
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// servers start private servers, each by the name that a block needs, and return their
// addresses, or an empty one if this machine does not have the program.
var servers = map[string]func(*testing.T) string{"redis": redis, "postgres": postgres, "mariadb": mariadb}

func redis(t *testing.T) string {
	t.Helper()
	program := look(t, "redis", "redis-server")
	if program == "" {
		return ""
	}
	addr := freeAddr(t)
	serve(t, addr, as(t, "", program, "--port", portOf(t, addr), "--dir", t.TempDir(), "--appendonly", "yes"))
	return addr
}

func postgres(t *testing.T) string {
	t.Helper()
	program := look(t, "postgres", "/usr/lib/postgresql/*/bin/postgres")
	if program == "" {
		return ""
	}
	addr, data := freeAddr(t), folder(t, "postgres")
	runs(t, as(t, "postgres", filepath.Join(filepath.Dir(program), "initdb"), "-D", data, "--username=postgres", "--auth=trust", "--no-sync"))
	serve(t, addr, as(t, "postgres", program, "-D", data, "-h", "127.0.0.1", "-p", portOf(t, addr), "-k", ""))
	return "postgres://postgres@" + addr + "/postgres"
}

func mariadb(t *testing.T) string {
	t.Helper()
	program := look(t, "mariadb", "/usr/sbin/mariadbd")
	if program == "" {
		return ""
	}
	addr, dir := freeAddr(t), folder(t, "mysql")
	data, temporary := "--datadir="+filepath.Join(dir, "data"), "--tmpdir="+dir // a server that starts deletes all temporary tables in it
	runs(t, as(t, "mysql", "mariadb-install-db", "--no-defaults", data, temporary, "--auth-root-authentication-method=normal", "--skip-name-resolve"))
	serve(t, addr, as(t, "mysql", program, "--no-defaults", data, temporary, "--bind-address=127.0.0.1", "--port="+portOf(t, addr), "--socket="+filepath.Join(dir, "socket"), "--skip-name-resolve"))
	return "root@tcp(" + addr + ")/test"
}

// look returns the path of the last program that matches a name, or else fails if the
// machine has to have the server.
func look(t *testing.T, server, pattern string) string {
	t.Helper()
	if path, err := exec.LookPath(filepath.Base(pattern)); err == nil {
		return path
	}
	found, _ := filepath.Glob(pattern)
	if len(found) > 0 {
		return found[len(found)-1]
	}
	if slices.Contains(strings.Split(os.Getenv("REPRISE_TEST_REQUIRE"), ","), server) {
		t.Fatalf("%s is not installed", filepath.Base(pattern))
	}
	return ""
}

// folder returns a folder of an account, if this process may give it one.
func folder(t *testing.T, account string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", account) //nolint:usetesting // a folder of the test is closed to other accounts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if c := as(t, account, "true").SysProcAttr.Credential; c != nil {
		if err := os.Chown(dir, int(c.Uid), int(c.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// as returns a command, for an account if this process is root's, as which some servers
// refuse to run.
func as(t *testing.T, account, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{}
	if account != "" && os.Geteuid() == 0 {
		of, err := user.Lookup(account)
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.ParseUint(of.Uid, 10, 32)
		gid, _ := strconv.ParseUint(of.Gid, 10, 32)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return cmd
}

func runs(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// serve starts a server, waits until it listens, and kills it after the test.
func serve(t *testing.T, addr string, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if !poll(t, func() bool { return listens(t, addr) }) {
		t.Fatalf("%s does not listen", cmd)
	}
}

func listens(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// poll asks for up to a minute, and returns the last answer.
func poll(t *testing.T, ready func() bool) bool {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ready(); {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			return false
		}
		if time.Now().After(end) {
			return ready()
		}
	}
	return true
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func portOf(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
