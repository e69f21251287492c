package commands_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/tools/internal/servers"
	"github.com/reprise-go/reprise/tools/internal/tree"
)

// world is a machine and the clone on it.
type world struct {
	clone   string
	env     []string
	place   *strings.Replacer // the addresses that the pages name, for those of this machine
	serving *sync.Mutex       // one program at a time listens on port
	port    string            // of the examples
	has     map[string]bool   // servers
}

// The addresses of the pages.
var (
	examplesAt = []string{"localhost:8080", "127.0.0.1:8080"}
	redisAt    = []string{"localhost:6379", "127.0.0.1:6379"}
	postgresAt = []string{"postgres://localhost/postgres", "postgres://127.0.0.1/postgres"}
	mariadbAt  = []string{"root@tcp(127.0.0.1:3306)/test"}
	natsAt     = []string{"localhost:4222", "127.0.0.1:4222"}
)

// repository is where a reader clones from.
const repository = "https://github.com/reprise-go/reprise"

// newClone clones the committed tree. In it, the examples listen on a free port.
func newClone(t *testing.T) *world {
	t.Helper()
	w := &world{clone: filepath.Join(t.TempDir(), "reprise"), serving: new(sync.Mutex), has: map[string]bool{}}
	if out, ok := tree.Run(t, ".", nil, "git", "clone", "--quiet", tree.Root(t), w.clone); !ok {
		t.Fatal(out)
	}
	w.port = portOf(t, freeAddr(t))
	place := replacer(map[string][]string{"127.0.0.1:" + w.port: examplesAt})
	for _, file := range committed(t, w.clone, "examples/*.go") {
		text, err := os.ReadFile(filepath.Join(w.clone, file))
		if err != nil {
			t.Fatal(err)
		}
		tree.Write(t, w.clone, file, place.Replace(string(text)))
	}
	return w
}

// replacer replaces the addresses of the pages by others.
func replacer(places map[string][]string) *strings.Replacer {
	var pairs []string
	for to, from := range places {
		for _, address := range from {
			pairs = append(pairs, address, to)
		}
	}
	return strings.NewReplacer(pairs...)
}

// withoutServers is a machine with Go, git, make, a C compiler, and the other programs of
// the pages, without servers.
func (w *world) withoutServers(t *testing.T) *world {
	t.Helper()
	return w.machine(t, absent(t), tree.GoOnly(t, "curl"))
}

// addresses are the places of servers.
type addresses struct{ redis, postgres, mariadb string }

// absent returns addresses at which no server listens.
func absent(t *testing.T) addresses {
	t.Helper()
	return addresses{freeAddr(t), "postgres://" + freeAddr(t) + "/postgres", "root@tcp(" + freeAddr(t) + ")/test"}
}

// withServers is the same machine with servers, as far as they are installed. It fails
// without one that REPRISE_TEST_REQUIRE names.
func (w *world) withServers(t *testing.T) *world {
	t.Helper()
	at := absent(t)
	env := tree.GoOnly(t, "curl")
	bin, _ := strings.CutPrefix(env[0], "PATH=")
	has := map[string]bool{}
	if s := start(t, "redis", servers.Redis); s != nil {
		has["redis"] = true
		at.redis, _ = strings.CutPrefix(s.Env, "REDIS_ADDR=")
		tree.Link(t, bin, "redis-server")
		script := fmt.Sprintf("#!/bin/sh\nexec %s -p %s \"$@\"\n", look(t, "redis-cli"), portOf(t, at.redis)) // the default port is another's
		if err := os.WriteFile(filepath.Join(bin, "redis-cli"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if s := start(t, "postgres", servers.Postgres); s != nil {
		has["postgres"] = true
		tree.Link(t, bin, "psql")
		at.postgres, _ = strings.CutPrefix(s.Env, "DATABASE_URL=")
	}
	if s := start(t, "mariadb", servers.MariaDB); s != nil {
		has["mariadb"] = true
		at.mariadb, _ = strings.CutPrefix(s.Env, "MYSQL_DSN=")
	}
	m := w.machine(t, at, env)
	m.has = has
	return m
}

func start(t *testing.T, name string, start startFunc) *servers.Server {
	t.Helper()
	s, err := start(t.Context())
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("REPRISE_TEST_REQUIRE"), ","), name) {
			t.Fatal(err)
		}
		t.Logf("not with %s: %v", name, err)
		return nil
	}
	t.Cleanup(s.Stop)
	return s
}

// machine returns w with these servers and environment, and the program reprise
// installed.
func (w *world) machine(t *testing.T, at addresses, env []string) *world {
	t.Helper()
	m := *w
	m.has = map[string]bool{}
	nats := portOf(t, freeAddr(t))
	m.place = replacer(map[string][]string{
		"127.0.0.1:" + w.port: examplesAt, at.redis: redisAt, "'" + at.postgres + "'": postgresAt, at.mariadb: mariadbAt, "127.0.0.1:" + nats: natsAt, "-p " + nats: {"-p 4222"},
	})
	home, _ := strings.CutPrefix(env[1], "HOME=")
	temp := t.TempDir()
	env[0] += ":" + filepath.Join(home, "go", "bin")
	m.env = slices.Concat(env, []string{"TMPDIR=" + temp, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url." + w.clone + ".insteadOf", "GIT_CONFIG_VALUE_0=" + repository})
	if out, err := m.command(t, w.clone, "go install ./cmd/reprise").CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, out)
	}
	return &m
}

// command returns a script of the shell.
func (w *world) command(t *testing.T, dir, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, w.env
	return cmd
}

func look(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := servers.FreeAddr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func portOf(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
