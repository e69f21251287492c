package judged

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
)

// flags returns the flags of a test server for a store.
type flags func(t *testing.T) []string

// ours are the adapters over memory, and net/http over the other stores.
func ours(t *testing.T, b *board) []*service {
	t.Helper()
	var all []*service
	add := func(adapter, variant, program string, store flags, profiles ...string) {
		all = append(all, &service{
			result: result{Name: adapter, Variant: variant, Ours: true}, profiles: profiles, path: "/t/op", counter: "/executions/op",
			command: func(t *testing.T) []string { t.Helper(); return append([]string{program}, store(t)...) },
		})
	}
	var nethttp string
	for _, adapter := range []string{"nethttp", "gin", "echo", "echo5", "fiber", "fiber3"} {
		program := b.build(t, "lab/"+adapter, "testserver")
		add(adapter, "memory", program, with("-store", "memory"), "draft-07", "reprise")
		if adapter == "nethttp" {
			nethttp = program
		}
	}
	for _, variant := range []struct {
		name  string
		flags flags
	}{
		{"redis", b.inRedis},
		{"postgres", b.inPostgres},
		{"postgres-tx", b.inPostgres},
		{"mysql", b.inMariaDB},
		{"mysql-tx", b.inMariaDB},
		{"sqlite", inSQLite},
		{"sqlite-tx", inSQLite},
	} {
		store := func(t *testing.T) []string {
			t.Helper()
			return append([]string{"-store", variant.name}, variant.flags(t)...)
		}
		add("nethttp", variant.name, nethttp, store, "draft-07", "reprise")
	}
	b.version("etcd", line(t, filepath.Join(root, "lab", "etcd"), "go", "list", "-m", "-f", "{{.Version}}", "go.etcd.io/etcd/server/v3"))
	server, etcd := b.build(t, "lab/etcd", "etcd"), b.build(t, "lab/etcd/testserver", ".")
	add("nethttp", "etcd", etcd, func(t *testing.T) []string {
		t.Helper()
		return []string{"-store", "etcd", "-etcd-url", strings.Join(servers.StartEtcd(t, server, 1).Addrs(), ",")}
	}, "draft-07", "reprise")
	add("nethttp", "memory, at most once", nethttp, with("-store", "memory", "-preset", "at-most-once"), "stripe")
	return all
}

func with(list ...string) flags { return func(*testing.T) []string { return list } }

func (b *board) inRedis(t *testing.T) []string {
	t.Helper()
	server := servers.Redis.Shared(t)
	b.version("Redis", server.Version().String())
	return []string{"-redis-url", server.URL()}
}

func (b *board) inPostgres(t *testing.T) []string {
	t.Helper()
	server := servers.SharedPostgres(t)
	rows, err := server.Exec(t.Context(), "SHOW server_version")
	if err != nil {
		t.Fatal(err)
	}
	version, _, _ := strings.Cut(rows[0][0], " ")
	b.version("PostgreSQL", version)
	return []string{"-postgres-url", server.URL()}
}

func (b *board) inMariaDB(t *testing.T) []string {
	t.Helper()
	server := servers.SharedMariaDB(t)
	return []string{"-mysql-url", mysqlserver.New(t, server)}
}

func inSQLite(t *testing.T) []string {
	t.Helper()
	return []string{"-sqlite-file", filepath.Join(t.TempDir(), "records")}
}

// peers are the other middlewares: those of Fiber, and those of npm.
func peers(t *testing.T, b *board) []*service {
	t.Helper()
	var all []*service
	for _, f := range []struct{ name, module, program, framework string }{
		{"Fiber v2's own", "tools/peers", "fiberv2/own", "github.com/gofiber/fiber/v2"},
		{"Fiber v3's own", "tools/peers/fiberv3", "own", "github.com/gofiber/fiber/v3"},
	} {
		versions := map[string]string{f.framework: line(t, filepath.Join(root, filepath.FromSlash(f.module)), "go", "list", "-m", "-f", "{{.Version}}", f.framework)}
		all = append(all, &service{
			result:   result{Name: f.name, Variant: "memory", Versions: versions},
			profiles: []string{"draft-07"}, path: "/t/op", counter: "/executions/op",
			command: with(b.build(t, f.module, f.program)),
		})
	}
	if _, err := exec.LookPath("npm"); err != nil {
		b.left = append(b.left, "the packages of npm: npm is not installed")
		return all
	}
	folder, locked := b.npm(t)
	b.version("Node", line(t, folder, "node", "--version"))
	for _, p := range []struct {
		name, variant, argument string
		packages, profiles      []string
	}{
		{"@node-idempotency/nestjs", "memory", "nestjs-memory", []string{"@node-idempotency/nestjs", "@nestjs/core"}, []string{"draft-07"}},
		{"@node-idempotency/nestjs", "redis", "nestjs-redis", []string{"@node-idempotency/nestjs", "@nestjs/core"}, []string{"draft-07"}},
		{"express-idempotency", "memory", "express-idempotency", []string{"express-idempotency", "express"}, []string{"draft-07", "stripe"}},
		{"express-idempotency", "redis", "express-idempotency-redis", []string{"express-idempotency", "express-idempotency-redis-adapter", "express"}, []string{"draft-07", "stripe"}},
		{"idempotency-backend", "file", "idempotency-backend", []string{"idempotency-backend", "express"}, []string{"draft-07"}},
	} {
		versions := map[string]string{}
		for _, name := range p.packages {
			versions[name] = locked[name]
		}
		all = append(all, &service{
			result:   result{Name: p.name, Variant: p.variant, Versions: versions},
			profiles: p.profiles, path: "/judged", counter: "/executions",
			command: func(t *testing.T) []string {
				t.Helper()
				command := []string{"node", filepath.Join(folder, "judged.js"), p.argument}
				if p.variant == "redis" {
					command = append(command, servers.Redis.Shared(t).Addr())
				}
				return command
			},
		})
	}
	return all
}

// npm installs the packages beside a copy of their program, and returns the folder and
// the versions in the lock file.
func (b *board) npm(t *testing.T) (folder string, locked map[string]string) {
	t.Helper()
	folder = filepath.Join(b.programs, "tools", "peers", "node")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(root, "tools", "peers", "node"))); err != nil {
		t.Fatal(err)
	}
	line(t, folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	text, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	locked = map[string]string{}
	for path, p := range lock.Packages {
		locked[strings.TrimPrefix(path, "node_modules/")] = p.Version
	}
	return folder, locked
}
