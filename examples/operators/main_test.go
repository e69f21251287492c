package main

import (
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/examples/internal/program"
	"github.com/reprise-go/reprise/lab/servers"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // they wait for leases to lapse
	os.Exit(servers.Main{M: program.Main{M: m}}.Run())
}

// machines are the places of the records, as arguments of the program.
var machines = map[string]func(*testing.T) []string{
	"file": func(*testing.T) []string { return nil },
	"redis-url": func(t *testing.T) []string {
		t.Helper()
		return []string{"-redis-url", servers.Redis.Shared(t).URL()}
	},
}

// environment is that of a machine without servers, and with a folder for temporary files
// that must be empty at the end.
func environment(t *testing.T) []string {
	t.Helper()
	return append(program.WithoutServers(), "TMPDIR="+emptyAfter(t))
}

// The demo checks itself. In a Redis that stays, a second run is not confused by the
// records of the first.
func TestDemoKillsAProcess(t *testing.T) {
	t.Parallel()
	path := program.Build(t)
	for name, find := range machines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args, env := find(t), environment(t)
			for range 2 {
				said, status := program.Run(t, path, env, append(args, "-demo")...)
				if status != 0 || !strings.Contains(said, "1. "+crashed+"\n") || !strings.HasSuffix(said, "\nThe order was not run a second time.\n") {
					t.Errorf("exit status %d: %s", status, said)
				}
			}
		})
	}
}

func TestConsoleShowsARecordInEveryState(t *testing.T) {
	t.Parallel()
	path := program.Build(t)
	for name, find := range machines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process := program.Start(t, path, environment(t), append(find(t), "-addr", "127.0.0.1:0")...)
			base := process.Await(`The console: (http://[0-9.:]+)/idempotency/\n`)
			process.Await("stuck: " + idOf(stuck).Short() + `\. ` + crashed)
			for key, state := range map[string]store.RecordState{
				"order-done": store.StateCompleted, "order-running": store.StateRunning, stuck: store.StateLapsed,
				"order-resolved": store.StateCompleted, "order-unreadable": store.StateUnreadable,
			} {
				page, err := visit(t.Context(), base+"/idempotency/records?store=orders&state="+state.String())
				if err != nil || !strings.Contains(page, idOf(key).Short()) {
					t.Errorf("%s is not listed as %v: %v: %s", key, state, err, page)
				}
			}

			got, err := send(t.Context(), base, "order-unreadable", false)
			if err != nil || !strings.Contains(got.body, `"record-corrupt"`) {
				t.Errorf("the client of the unreadable record got %+v, %v", got, err)
			}
			forget(t, base, idOf("order-unreadable"))
			if got, err := send(t.Context(), base, "order-unreadable", false); err != nil || got.status != http.StatusCreated || got.replayed {
				t.Errorf("after it was forgotten the client got %+v, %v", got, err)
			}
		})
	}
}

// forget sends the form of the console's page of an unreadable record.
func forget(t *testing.T, base string, id store.ID) {
	t.Helper()
	page, err := visit(t.Context(), base+"/idempotency/records/orders/"+id.String())
	fence := regexp.MustCompile(`name="fence" value="([0-9]+)"`).FindStringSubmatch(page)
	if err != nil || fence == nil {
		t.Fatalf("the page has no fence: %v: %s", err, page)
	}
	form := url.Values{
		"action": {"forget"}, "state": {"unreadable"}, "fence": {fence[1]}, "again": {"yes"},
		"reason": {"nothing was ordered"}, "confirm": {id.Short()},
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/idempotency/records/orders/"+id.String(), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.Request.URL.Query().Get("forgotten") != id.Short() {
		page, err := io.ReadAll(got.Body)
		t.Errorf("the console: %s, %v: %s", got.Status, err, page)
	}
}

// forgetful is a store that forgets the records that an operator resolves.
type forgetful struct{ backend }

func (f forgetful) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	return f.backend.Resolve(ctx, id, store.Resolution{Fence: r.Fence, Forget: true})
}

func TestDemoFailsWhenTheOrderRunsAgain(t *testing.T) {
	t.Parallel()
	path := program.Build(t)
	executable = func() (string, error) { return path, nil } // not this test
	records, err := openFile(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	err = shop{forgetful{records}}.demo(t.Context(), t.Output(), anyPort)
	if want := `want {status:201 replayed:true body:{"order":3}}, got {status:201 replayed:false body:{"order":1}}`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestATakenPortLeadsToTheNextFreeOne(t *testing.T) {
	t.Parallel()
	path := program.Build(t)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	process := program.Start(t, path, program.WithoutServers(), "-addr", addr)
	port := process.Await(`Port [0-9]+ is taken: ([0-9]+), the next free one, is used instead\.`)
	console := process.Await(`The console: (\S+)`)
	if console != "http://127.0.0.1:"+port+"/idempotency/" {
		t.Errorf("the console is %s, not on port %s", console, port)
	}
	if _, err := visit(t.Context(), console); err != nil {
		t.Error(err)
	}
	if said, status := program.Run(t, path, program.WithoutServers(), "-demo", "-addr", addr); status != 0 || !strings.Contains(said, "is taken: ") {
		t.Errorf("-demo: exit status %d: %s", status, said)
	}
}

func TestWrongFlagsAreNamed(t *testing.T) {
	t.Parallel()
	path := program.Build(t)
	for name, c := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"unknown":        {[]string{"-nonsense"}, 2, "not defined: -nonsense\nUsage of "},
		"argument":       {[]string{"demo"}, 1, `operators: unexpected argument "demo"`},
		"address":        {[]string{"-addr", "8080"}, 1, `operators: the address "8080" is invalid: want host:port`},
		"demo's address": {[]string{"-demo", "-addr", "127.0.0.1:x"}, 1, `operators: the address "127.0.0.1:x" is invalid`},
		"no Redis":       {[]string{"-redis-url", "redis://127.0.0.1:1"}, 1, "operators: -redis-url: reprise: store unreachable: "},
		"no Redis URL":   {[]string{"-demo", "-redis-url", "http://127.0.0.1:1"}, 1, "operators: -redis-url: redis: invalid URL scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if said, status := program.Run(t, path, program.WithoutServers(), c.args...); status != c.status || !strings.Contains(said, c.want) {
				t.Errorf("exit status %d, want %d and %q in: %s", status, c.status, c.want, said)
			}
		})
	}
}

func TestConsoleIsServedWithOrWithoutABrowser(t *testing.T) {
	t.Parallel()
	path := program.Build(t)
	for name, c := range map[string]struct {
		env  []string
		want string // after the usual text
	}{
		"none":                  {program.WithoutServers(), `No browser was opened \(.*not found.*\)\. The console: http`},
		"one without a display": {withProgram(t, opener(), "echo no display >&2; exit 3"), `no display\n+No browser was opened \(exit status 3\)\. The console: http`},
		"one that stays open": {
			withProgram(t, opener(), `echo "opened $1"; while kill -0 "$PPID"; do /bin/sleep 0.02; done`),
			`opened http://[0-9.:]+/idempotency/\n`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			process := program.Start(t, path, c.env, "-open", "-addr", ":0")
			console := process.Await(`The console: (\S+)\n`)
			process.Await(c.want)
			if _, err := visit(t.Context(), console); err != nil {
				t.Error(err)
			}
		})
	}
}

// withProgram returns the environment of a machine with one program, a script.
func withProgram(t *testing.T, name, script string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+dir)
}

// emptyAfter returns a folder that must be empty at the end of the test.
func emptyAfter(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "op") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
