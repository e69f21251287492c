package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/tools/internal/servers"
)

// A program is one of the folder examples that a user copies and runs.
type program struct {
	folder string
	tidy   bool   // whether it imports more of its framework than the adapter does, and needs go mod tidy
	driver string // the module that its store leaves to it, if any
	env    string // the variable that names the server it needs, if any; without the server it is built and does not run

	// A service listens on serviceAddr; it gets the request twice with one key.
	path, body string
	header     http.Header

	// Another program ends, and has this in its output.
	prints string
}

// serviceAddr is where the services of the examples listen.
const serviceAddr = "127.0.0.1:8080"

var programs = []program{
	{folder: "minimal", path: "/orders"},
	{folder: "gin-redis", env: "REDIS_ADDR", path: "/shows/hamlet/seats", header: http.Header{"Authorization": {basicAuth("ada")}}},
	{folder: "echo-postgres", env: "DATABASE_URL", path: "/shows/hamlet/tickets", header: http.Header{"X-Buyer": {"ada"}}},
	{folder: "mysql", driver: "github.com/go-sql-driver/mysql", env: "MYSQL_DSN", path: "/vouchers/WELCOME", header: http.Header{"X-Customer": {"ada"}}},
	{folder: "sqlite", driver: "modernc.org/sqlite", path: "/transfers", body: `{"from":1,"to":2,"amount":100}`},
	{folder: "etcd", env: "ETCD_MEMBERS"}, // its cluster is one of lab/etcd's, where it runs
	{folder: "echo5-memory", tidy: true, path: "/places", header: http.Header{"Authorization": {basicAuth("ada")}}},
	{folder: "fiber-redis", env: "REDIS_ADDR", path: "/messages", body: `{"To":"+49","Text":"hi"}`, header: http.Header{"Authorization": {"Bearer acme-token"}, "Content-Type": {"application/json"}}},
	{folder: "fiber3-memory", path: "/cards", body: `{"amount":2500}`, header: http.Header{"Authorization": {"Bearer acme-token"}, "Content-Type": {"application/json"}}},
	{folder: "bothends", prints: "order 1 after 2 attempts, replayed: true"},
	{folder: "grpc", prints: "3 orders were taken"},
}

// basicAuth returns the field with which the examples know a user.
func basicAuth(name string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, "pw-of-"+name)
	return r.Header.Get("Authorization")
}

// withoutProgram are the adapters and stores that no program of the folder examples
// shows: the service of an RPC needs generated code. Their examples run, as those of
// every module.
var withoutProgram = []string{"adapters/connect"}

// runPrograms copies each program into an empty module, gets the modules of the release
// that it imports, builds it, and runs it.
func (r *release) runPrograms(ctx context.Context, u *consumer) error {
	shown := slices.Clone(withoutProgram)
	for i := range programs {
		asked, err := r.imports(programs[i])
		if err != nil {
			return err
		}
		shown = append(shown, foldersOf(asked)...)
	}
	for _, m := range r.modules {
		if top, _, _ := strings.Cut(m.folder, "/"); (top == "adapters" || top == "store") && !m.internal() && !slices.Contains(shown, m.folder) {
			return refuse("no program of examples imports %s: give one a row in tools/release/programs.go", m.folder)
		}
	}
	var started []*servers.Server
	defer func() {
		for _, s := range started {
			s.Stop()
		}
	}()
	for _, start := range []func(context.Context) (*servers.Server, error){servers.Redis, servers.Postgres, servers.MariaDB} {
		s, err := start(ctx)
		if errors.As(err, new(servers.NotInstalled)) {
			r.leftOut = append(r.leftOut, err.Error()+": the programs that need it are built and do not run")
			continue
		} else if err != nil {
			return err
		}
		started = append(started, s)
	}
	return r.inParallel(ctx, len(programs), func(ctx context.Context, i int) (string, error) {
		p := programs[i]
		return "examples/" + p.folder + ": not built", r.runProgram(ctx, u, p, started)
	})
}

func (r *release) runProgram(ctx context.Context, u *consumer, p program, started []*servers.Server) error {
	dir, err := u.newModule(ctx, "examples-"+p.folder)
	if err != nil {
		return err
	}
	addr, err := servers.FreeAddr(ctx)
	if err != nil {
		return err
	}
	asked, err := r.imports(p)
	if err != nil {
		return err
	}
	if err := p.copy(r.clone.dir, dir, addr); err != nil {
		return err
	}
	get := []string{"get"}
	for _, m := range asked {
		get = append(get, m.path()+"@"+r.version)
	}
	var others []string
	if p.driver != "" {
		others = []string{p.driver}
	}
	commands := [][]string{append(get, others...), {"build", "-o", "program", "."}}
	if p.tidy {
		commands = slices.Insert(commands, 1, []string{"mod", "tidy"})
	}
	for _, args := range commands {
		if _, err := u.run(ctx, dir, args...); err != nil {
			return err
		}
	}
	if err := r.checkGraph(ctx, u, dir, asked, others...); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "program"))
	cmd.Dir = dir
	if p.env != "" {
		i := slices.IndexFunc(started, func(s *servers.Server) bool { return strings.HasPrefix(s.Env, p.env+"=") })
		if i < 0 {
			r.say("examples/%s is built, and does not run: no server is started for %s", p.folder, p.env)
			return nil
		}
		cmd.Env = append(environment(), started[i].Env)
	}
	if err := p.run(ctx, cmd, addr); err != nil {
		return fmt.Errorf("examples/%s: %w", p.folder, err)
	}
	r.say("examples/%s runs with %s", p.folder, strings.Join(foldersOf(asked), ", "))
	return nil
}

// sources returns the files of a program by their names, without its tests.
func (p program) sources(root string) (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(root, "examples", p.folder, "*.go"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, refuse("there is no program in examples/%s: change its row in tools/release/programs.go", p.folder)
	}
	return files, nil
}

// imports returns the modules of the release that a program imports.
func (r *release) imports(p program) ([]module, error) {
	files, err := p.sources(r.clone.dir)
	if err != nil {
		return nil, err
	}
	var asked []module
	for _, m := range r.modules {
		for _, text := range files {
			if bytes.Contains(text, []byte(`"`+m.path()+`"`)) || bytes.Contains(text, []byte(`"`+m.path()+"/")) {
				asked = append(asked, m)
				break
			}
		}
	}
	return asked, nil
}

// copy copies a program into a folder, to listen on addr there.
func (p program) copy(root, dir, addr string) error {
	files, err := p.sources(root)
	if err != nil {
		return err
	}
	for name, text := range files {
		text = bytes.ReplaceAll(text, []byte(serviceAddr), []byte(addr))
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
