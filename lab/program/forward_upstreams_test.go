package program

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/servers"
)

// service is an upstream process in some language, which can be killed and started again.
// The file of its effects has a line with the key of each order.
type service struct {
	command func() *exec.Cmd
	scheme  string // of its URL
	address string
	effects string

	cmd  *exec.Cmd
	done chan struct{}
}

// languages has an upstream for each language. A function returns the command of a
// program that serves at $LISTEN and appends its effects to $EFFECTS.
var languages = map[string]func(tb testing.TB, dir, address, effects string) (path string, args []string){
	"go": func(tb testing.TB, dir, _, _ string) (string, []string) {
		tb.Helper()
		program := filepath.Join(dir, "upstream")
		if out, err := exec.CommandContext(tb.Context(), "go", "build", "-o", program, "./testdata/upstreams/golang").CombinedOutput(); err != nil {
			tb.Fatalf("%v\n%s", err, out)
		}
		return program, nil
	},
	"node": func(tb testing.TB, dir, _, _ string) (string, []string) {
		tb.Helper()
		need(tb, "node")
		for _, name := range []string{"package.json", "package-lock.json", "server.js"} {
			text, err := os.ReadFile(filepath.Join("testdata", "upstreams", "express", name))
			if err != nil {
				tb.Fatal(err)
			}
			write(tb, filepath.Join(dir, name), string(text))
		}
		install := exec.CommandContext(tb.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			missing(tb, "npm", "express cannot be installed from the npm registry: "+string(out))
		}
		return "node", []string{filepath.Join(dir, "server.js")}
	},
	"python": func(tb testing.TB, _, _, _ string) (string, []string) {
		tb.Helper()
		need(tb, "python3")
		return "python3", []string{filepath.Join("testdata", "upstreams", "python.py")}
	},
	"nginx": func(tb testing.TB, dir, address, effects string) (string, []string) {
		tb.Helper()
		need(tb, "nginx")
		text, err := os.ReadFile(filepath.Join("testdata", "upstreams", "nginx.conf"))
		if err != nil {
			tb.Fatal(err)
		}
		conf := filepath.Join(dir, "nginx.conf")
		write(tb, conf, strings.NewReplacer("DIR", dir, "LISTEN", address, "EFFECTS", effects).Replace(strings.Join(strings.Split(string(text), "\n")[1:], "\n")))
		return "nginx", []string{"-p", dir, "-c", conf, "-e", "stderr"}
	},
}

// need skips the test without a program, unless REPRISE_TEST_REQUIRE has it.
func need(tb testing.TB, program string) {
	tb.Helper()
	if _, err := exec.LookPath(program); err != nil {
		missing(tb, program, err.Error())
	}
}

func missing(tb testing.TB, name, text string) {
	tb.Helper()
	if servers.Required(tb, name) {
		tb.Fatal(text)
	}
	tb.Skip(text)
}

// startService starts the upstream of a language.
func startService(tb testing.TB, language string) *service {
	tb.Helper()
	dir := tb.TempDir()
	s := &service{scheme: "http://", address: servers.FreeAddr(tb), effects: filepath.Join(dir, "effects")}
	if language == "go" {
		s.scheme = "h2c://"
	}
	path, args := languages[language](tb, dir, s.address, s.effects)
	s.command = func() *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), path, args...)
		cmd.Env = append(os.Environ(), "LISTEN="+s.address, "EFFECTS="+s.effects)
		return cmd
	}
	s.start(tb)
	tb.Cleanup(s.kill)
	return s
}

// url returns the address for the flag --upstream.
func (s *service) url() string { return s.scheme + s.address }

// start starts the process and waits until it serves.
func (s *service) start(tb testing.TB) {
	tb.Helper()
	s.cmd, s.done = s.command(), make(chan struct{})
	var out log
	s.cmd.Stdout, s.cmd.Stderr = &out, &out
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) { _ = cmd.Wait(); close(done) }(s.cmd, s.done)
	await(tb, "the upstream", func() bool {
		select {
		case <-s.done:
			tb.Fatalf("the upstream ended:\n%s", &out)
		default:
		}
		conn, err := (&net.Dialer{}).DialContext(context.WithoutCancel(tb.Context()), "tcp", s.address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// kill kills the process, and returns when its port is free.
func (s *service) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// runs returns the number of effects of each key.
func (s *service) runs(tb testing.TB) map[string]int {
	tb.Helper()
	text, err := os.ReadFile(s.effects)
	if err != nil {
		tb.Fatal(err)
	}
	runs := map[string]int{}
	for line := range strings.Lines(string(text)) {
		runs[strings.Trim(line, "\"\n")]++
	}
	return runs
}

// Many requests with each key come at once, and then one after the other.
func TestProxyRunsAKeyOnceInEveryLanguage(t *testing.T) {
	t.Parallel()
	for language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := startService(t, language)
			f := forward(t, nil, "--store", "memory", "--upstream", s.url(), "--scope-header", "Authorization")
			for _, key := range []string{"a", "b", "c"} {
				var mu sync.Mutex
				var body []byte
				check := func() {
					got := post(t.Context(), nil, f.URL+"/orders", key, "pay")
					mu.Lock()
					defer mu.Unlock()
					switch {
					case got.status == http.StatusConflict: // in progress
					case got.status != http.StatusCreated:
						t.Errorf("%s: %+v", key, got)
					case body == nil:
						body = got.body
					case !bytes.Equal(body, got.body):
						t.Errorf("%s: %q, want %q", key, got.body, body)
					}
				}
				var clients sync.WaitGroup
				for range 8 {
					clients.Go(check)
				}
				clients.Wait()
				check()
				if got := post(t.Context(), nil, f.URL+"/orders", key, "pay"); !got.replayed() {
					t.Errorf("%s: %+v, want a replay", key, got)
				}
			}
			await(t, "the effects", func() bool { return len(s.runs(t)) == 3 }) // nginx logs after its answer
			for key, n := range s.runs(t) {
				if n != 1 {
					t.Errorf("%s ran %d times", key, n)
				}
			}
		})
	}
}
