package program

import (
	"bufio"
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of goose
	"github.com/pressly/goose/v3"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestGoInstall: go install puts a program of the right name where it should.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", "./cmd/reprise")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "reprise"), "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Available Commands:") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestGooseRunsThePrintedFiles: the files that the program prints for goose make the
// schema that the store needs, and their down parts remove all of it.
func TestGooseRunsThePrintedFiles(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	dir := t.TempDir()
	env := []string{"REPRISE_POSTGRES_URL=" + server.URL()}
	runProgram(t, env, 0, "migrate", "print", "--format", "goose", "--dir", dir)
	db, err := sql.Open("pgx", server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := runProgram(t, env, 0, "migrate", "status"); !strings.Contains(out, "the schema is what this release needs") {
		t.Error(out)
	}
	if _, err := provider.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if out := runProgram(t, env, 1, "migrate", "status"); !strings.Contains(out, "1 migration is missing") {
		t.Error(out)
	}
}

// runProgram runs the program and returns its output.
func runProgram(tb testing.TB, env []string, code int, args ...string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(tb), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		tb.Fatalf("exit code %d, want %d: %v\n%s", got, code, err, out)
	}
	return string(out)
}

// TestFindKnowsTheIDsOfTheMiddleware: the ID that find derives is the one that a request
// through an adapter gets, with a scope, with an endpoint, and without a scope.
func TestFindKnowsTheIDsOfTheMiddleware(t *testing.T) {
	t.Parallel()
	addr := servers.Redis.Shared(t).Addr()
	f := redisFixture(t, labtest.RedisClient(t, addr), "redis://"+addr)
	engine, err := reprise.New(f.store, reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	tenant := func(*http.Request) (string, error) { return "tenant-17", nil }
	for name, c := range map[string]struct {
		scope  func(*http.Request) (string, error)
		config protocol.Config
		args   []string
	}{
		"scope":    {scope: tenant, args: []string{"--scope", "tenant-17"}},
		"endpoint": {scope: tenant, config: protocol.Config{Endpoint: "refunds"}, args: []string{"--scope", "tenant-17", "--endpoint", "refunds"}},
		"unscoped": {scope: reprisehttp.Unscoped, args: []string{"--unscoped"}},
	} {
		t.Run(name, func(t *testing.T) {
			guard, err := protocol.Over(engine, c.config)
			if err != nil {
				t.Fatal(err)
			}
			handler := reprisehttp.Middleware(guard, c.scope)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "made by "+name)
			}))
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", strings.NewReader("{}"))
			key := "find-" + name
			request.Header.Set("Idempotency-Key", `"`+key+`"`)
			handler.ServeHTTP(httptest.NewRecorder(), request)

			cmd := exec.CommandContext(t.Context(), program(t), append([]string{"find", "--reveal"}, c.args...)...)
			cmd.Env = append(os.Environ(), f.env...)
			cmd.Stdin = strings.NewReader(key)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "made by "+name) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestConsole: the command serves the pages to anyone who has the address, and ends with
// a signal.
func TestConsole(t *testing.T) {
	t.Parallel()
	addr := servers.Redis.Shared(t).Addr()
	f := redisFixture(t, labtest.RedisClient(t, addr), "redis://"+addr)
	ids := f.seed(t)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program(t), "console")
	cmd.Env, cmd.Stderr = append(os.Environ(), f.env...), t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	var address string
	for lines := bufio.NewScanner(stdout); address == "" && lines.Scan(); {
		if found, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			address = found
		}
	}
	root, ok := strings.CutPrefix(address, "http://127.0.0.1:")
	port, secret, _ := strings.Cut(root, "/")
	if !ok || len(secret) < 20 {
		t.Fatalf("the address is %q", address)
	}
	if status, body := get(t, address, ""); status != http.StatusOK || !strings.Contains(body, ids["LAPSED2"].Short()) {
		t.Errorf("the page is %d:\n%s", status, body)
	}
	if status, _ := get(t, "http://127.0.0.1:"+port+"/", ""); status != http.StatusNotFound {
		t.Errorf("without the secret part of the path: %d, want 404", status)
	}
	if status, body := get(t, address, "rebound.example"); status < 400 || strings.Contains(body, ids["LAPSED2"].Short()) {
		t.Errorf("for another host: %d", status)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// get fetches a page, for a host if it is not empty.
func get(tb testing.TB, address, host string) (int, string) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	request.Host = host
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestInterruptedPurge: an interrupt ends a purge between two batches, and the reported
// records are deleted.
func TestInterruptedPurge(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	pg := labtest.SetupPostgres(t, server)
	f := postgresFixture(t, pg, server.URL())
	const all, batch = 500, 50
	f.fill(t, all)
	table := pg.Config.Schema + ".reprise_records"
	if _, err := pg.Pool.Exec(t.Context(), "UPDATE "+table+" SET expires_at = now(), valid_until = now(), lease_until = now()"); err != nil {
		t.Fatal(err)
	}
	s := f.start(t, "purge", "--batch", strconv.Itoa(batch), "--pause", "400ms")
	s.await("deleted, ", "a second", "to go")
	s.typeIn(keyCtrlC)
	s.exits(130)
	s.wrote("interrupted between two batches; run it again to continue")
	var left int
	if err := pg.Pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left == 0 || left%batch != 0 {
		t.Errorf("%d records are left of %d", left, all)
	}
	s.wrote(strconv.Itoa(all-left) + " records deleted in ")
}
