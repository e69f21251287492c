package program

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// proxied are the stores that a proxy is tested on, with its flags and its environment.
var proxied = map[string]func(testing.TB) (args, env []string){
	"memory": func(testing.TB) ([]string, []string) { return []string{"--store", "memory"}, nil },
	"redis": func(tb testing.TB) ([]string, []string) {
		tb.Helper()
		return []string{"--store", "redis://" + servers.Redis.Shared(tb).Addr(), "--prefix", labtest.RedisPrefix()}, nil
	},
	"postgres": func(tb testing.TB) ([]string, []string) {
		tb.Helper()
		server := servers.StartPostgres(tb, "fsync=on") // without it the proxy does not start
		f := postgresFixture(tb, labtest.SetupPostgres(tb, server), server.URL())
		return []string{"--store", server.URL()}, f.env
	},
}

// upstream is a service that knows nothing of the header.
type upstream struct {
	*httptest.Server

	runs  atomic.Int64
	serve atomic.Pointer[http.HandlerFunc]
}

func startUpstream(tb testing.TB) *upstream {
	tb.Helper()
	u := &upstream{}
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.runs.Add(1)
		if f := u.serve.Load(); f != nil {
			(*f)(w, r)
			return
		}
		w.Header()["X-Twice"] = []string{"a", "b"}
		w.WriteHeader(http.StatusCreated)
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "run %d of %q \x00\xff", u.runs.Load(), body)
	}))
	u.Config.Protocols = new(http.Protocols)
	u.Config.Protocols.SetHTTP1(true)
	u.Config.Protocols.SetUnencryptedHTTP2(true)
	u.Start()
	tb.Cleanup(u.Close)
	return u
}

func (u *upstream) handle(f http.HandlerFunc) { u.serve.Store(&f) }

func TestProxyRunsAKeyOnceOnEachStore(t *testing.T) {
	t.Parallel()
	for name, on := range proxied {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := startUpstream(t)
			u.Config.SetKeepAlivesEnabled(false) // a connection that breaks while a request is written says nothing for certain
			args, env := on(t)
			f := forward(t, env, append(args, "--upstream", u.URL, "--scope-header", "Authorization")...)

			first, again := post(t.Context(), nil, f.URL+"/orders", "k1", "pay"), post(t.Context(), nil, f.URL+"/orders", "k1", "pay")
			if first.status != http.StatusCreated || first.replayed() || !again.replayed() || again.status != first.status || !bytes.Equal(first.body, again.body) ||
				strings.Join(again.header["X-Twice"], ",") != "a,b" {
				t.Errorf("first %+v, again %+v", first, again)
			}

			u.handle(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte("half"))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
			if lost := post(t.Context(), nil, f.URL+"/orders", "k2", "pay"); lost.err == nil && lost.status != http.StatusBadGateway {
				t.Errorf("a lost answer: %+v", lost)
			}
			u.serve.Store(nil)
			if again := post(t.Context(), nil, f.URL+"/orders", "k2", "pay"); !again.unknown() {
				t.Errorf("after a lost answer: %+v, want outcome-unknown", again)
			}

			address, runs := u.Listener.Addr().String(), u.runs.Load()
			_ = u.Listener.Close()
			awaitRefusal(t, address)
			if down := post(t.Context(), nil, f.URL+"/orders", "k3", "pay"); down.status != http.StatusServiceUnavailable {
				t.Errorf("with the upstream down: %+v, want 503", down)
			}
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			revived := httptest.NewUnstartedServer(u.Config.Handler)
			_ = revived.Listener.Close()
			revived.Listener = l
			revived.Start()
			t.Cleanup(revived.Close)
			if up := post(t.Context(), nil, f.URL+"/orders", "k3", "pay"); up.status != http.StatusCreated || up.replayed() {
				t.Errorf("with the upstream up: %+v, want the first run", up)
			}
			if u.runs.Load() != runs+1 {
				t.Errorf("%d runs, want %d", u.runs.Load(), runs+1)
			}
			if code := f.exits(syscall.SIGTERM); code != 0 {
				t.Errorf("it ended with %d:\n%s", code, f.stderr)
			}
		})
	}
}

func TestProxyWithoutAServiceOrAScope(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"the flags in the group [config upstream] is required": {"--store", "memory", "--unscoped"},
		"scope-certificate unscoped] is required":              {"--store", "memory", "--upstream", "http://127.0.0.1:1"},
		"[scope-header unscoped] were all set":                 {"--store", "memory", "--upstream", "http://127.0.0.1:1", "--unscoped", "--scope-header", "A"},
		`"--unscoped" flag: this flag takes no value`:          {"--store", "memory", "--upstream", "http://127.0.0.1:1", "--unscoped=false"},
		"--scope-certificate needs --tls-client-ca":            {"--store", "memory", "--upstream", "http://127.0.0.1:1", "--scope-certificate"},
		`"--trusted" flag: "10.0.0.0/99" is neither`:           {"--store", "memory", "--upstream", "http://127.0.0.1:1", "--unscoped", "--trusted", "10.0.0.1,10.0.0.0/99"},
		"no store: pass":                            {"--upstream", "http://127.0.0.1:1", "--unscoped"},
		"--store is neither":                        {"--store", "mysql://secret", "--upstream", "http://127.0.0.1:1", "--unscoped"},
		"[config unscoped] were all set":            {"--store", "memory", "--config", "x", "--unscoped"},
		"--transactional is for services":           {"--store", "postgres://127.0.0.1:1/x", "--transactional", "--upstream", "http://127.0.0.1:1", "--unscoped"},
		"TLS needs --tls-cert and --tls-key":        {"--store", "memory", "--upstream", "http://127.0.0.1:1", "--unscoped", "--tls-cert", "x"},
		"--max-connections is 0, want at least one": {"--store", "memory", "--upstream", "http://127.0.0.1:1", "--unscoped", "--max-connections", "0"},
		"--drain is -1s, want 0 or more":            {"--store", "memory", "--upstream", "http://127.0.0.1:1", "--unscoped", "--drain", "-1s"},
		"the URL of the upstream must begin with":   {"--store", "memory", "--upstream", "localhost:1", "--unscoped"},
	} {
		if out := runProgram(t, []string{"REPRISE_REDIS_URL=", "REPRISE_POSTGRES_URL="}, 2, append([]string{"proxy"}, args...)...); !strings.Contains(out, want) || strings.Contains(out, "secret") {
			t.Errorf("%q\nwant %q", out, want)
		}
	}
	out := runProgram(t, nil, 3, "proxy", "--store", "redis://127.0.0.1:1", "--prefix", "shop:", "--upstream", "http://127.0.0.1:1", "--unscoped", "--timeout", "500ms")
	if !strings.Contains(out, "opening the store") {
		t.Errorf("without its store: %q", out)
	}
}

func TestProxyCheck(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.toml")
	write(t, file, "upstream = 'http://127.0.0.1:1'\nscope = 'unverified-claim:sub'\n[[route]]\nname = 'pay'\nmatch = ['POST /pay']\nrequired = true\n")
	out := runProgram(t, nil, 0, "proxy", "check", file)
	for _, want := range []string{"is valid", "default: all other requests, unverified-claim:sub, key optional", "pay: POST /pay, unverified-claim:sub, key required", "does not verify tokens"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	write(t, file, "upstream = 'http://127.0.0.1:1'\nscope = 'unscoped'\n\nretenton = '1h'\n")
	if out := runProgram(t, nil, 1, "proxy", "check", file); !strings.Contains(out, file+":4: unknown field retenton") {
		t.Errorf("%s", out)
	}
	write(t, file, "upstream = 'http://127.0.0.1:1'\nscope = 'unscoped'\n[default]\nfail_open = true\n")
	if out := runProgram(t, nil, 1, "proxy", "check", file); !strings.Contains(out, `policy "default": `) {
		t.Errorf("fail_open with at-most-once: %s", out)
	}
}

func write(tb testing.TB, file, text string) {
	tb.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Clients send requests all the time, some of which run while the file is read.
func TestProxyReloadsWithoutLosingARequest(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	file := filepath.Join(t.TempDir(), "reprise.toml")
	text := "upstream = '" + u.URL + "'\nscope = 'header:Authorization'\n"
	write(t, file, text)
	f := forward(t, nil, "--store", "memory", "--config", file)

	stop := make(chan struct{})
	var clients sync.WaitGroup
	var sent atomic.Int64
	for i := range 4 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("k%d-%d", i, n)
				if got := post(t.Context(), client, f.URL+"/orders", key, "pay"); got.status != http.StatusCreated {
					t.Errorf("%s: %+v", key, got)
					return
				}
				sent.Add(1)
			}
		})
	}
	for round := range 5 {
		before := sent.Load()
		write(t, file, text+"[default]\nrequired = true\n[[route]]\nname = 'n"+strconv.Itoa(round)+"'\nmatch = ['/n']\n")
		f.signal(syscall.SIGHUP)
		await(t, "a reload", func() bool { return strings.Count(f.stderr.String(), `"msg":"reloaded"`) == round+1 })
		await(t, "requests after it", func() bool { return sent.Load() > before+20 })
	}
	write(t, file, "nonsense")
	f.signal(syscall.SIGHUP)
	await(t, "the refusal", func() bool { return strings.Contains(f.stderr.String(), `"msg":"not reloaded"`) })
	close(stop)
	clients.Wait()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+"/orders", http.NoBody)
	resp, err := http.DefaultTransport.RoundTrip(req) //nolint:forbidigo // a test
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without a key: %d; the last valid file requires one", resp.StatusCode)
	}
	if got := u.runs.Load(); got != sent.Load() {
		t.Errorf("%d runs of %d requests", got, sent.Load())
	}
}

func TestProxyWarnsOfScopesThatItDoesNotVerify(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reprise.toml")
	write(t, file, "upstream = 'http://127.0.0.1:1'\nscope = 'unverified-claim:sub'\n")
	f := forward(t, nil, "--store", "memory", "--config", file)
	await(t, "the warning", func() bool { return strings.Contains(f.stderr.String(), "does not verify tokens") })
	write(t, file, "upstream = 'http://127.0.0.1:1'\nscope = 'unscoped'\n[default]\nscope = 'certificate'\n")
	f.signal(syscall.SIGHUP)
	await(t, "the warning", func() bool {
		return strings.Contains(f.stderr.String(), "no client has a verified certificate without --tls-client-ca")
	})
}

func TestProxyDrains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drain string
		code  int
	}{"in time": {"1m", 0}, "too late": {"50ms", 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := startUpstream(t)
			entered, held := make(chan struct{}), make(chan struct{})
			free := sync.OnceFunc(func() { close(held) })
			t.Cleanup(free)
			u.handle(func(w http.ResponseWriter, _ *http.Request) {
				close(entered)
				<-held
				w.WriteHeader(http.StatusAccepted)
			})
			f := forward(t, nil, "--store", "memory", "--upstream", u.URL, "--unscoped", "--drain", c.drain, "--admin", "127.0.0.1:0")
			got := make(chan *result)
			go func() { got <- post(t.Context(), nil, f.URL+"/orders", "k1", "pay") }()
			<-entered
			f.signal(syscall.SIGTERM)
			if c.code == 0 {
				awaitRefusal(t, strings.TrimPrefix(f.URL, "http://"))
				if status, _ := get(t, f.Admin+"/readyz", ""); status != http.StatusServiceUnavailable {
					t.Errorf("ready while it ends: %d", status)
				}
				free()
			}
			if r := <-got; (r.status == http.StatusAccepted) != (c.code == 0) {
				t.Errorf("the request that ran: %+v", r)
			}
			<-f.ended
			if code := f.cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, f.stderr)
			}
		})
	}
}

// A stream without a key may last for ever: it is cut when the drain time is over, and no
// record is lost by that.
func TestProxyCutsStreams(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	u.handle(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	f := forward(t, nil, "--store", "memory", "--upstream", u.URL, "--unscoped", "--drain", "50ms")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := new(http.Client).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	f.signal(syscall.SIGTERM)
	<-f.ended
	if code := f.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d, want 0:\n%s", code, f.stderr)
	}
}

func TestProxyTellsOperatorsItsState(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	redis := servers.Redis.Start(t)
	access := filepath.Join(t.TempDir(), "access.log")
	f := forward(t, nil, "--store", "redis://"+redis.Addr(), "--prefix", "shop:", "--upstream", u.URL, "--unscoped", "--admin", "127.0.0.1:0", "--access-log", access)
	for range 2 {
		post(t.Context(), nil, f.URL+"/orders?token=secret", "private", "pay")
	}
	u.handle(func(http.ResponseWriter, *http.Request) {})
	if status, _ := get(t, f.URL+"/unkeyed", ""); status != http.StatusOK {
		t.Errorf("a request without a key: %d", status)
	}
	for path, want := range map[string]string{
		"/healthz": "ok\n", "/readyz": "ready\n", "/metrics?": `reprise_proxy_request_seconds_count{code="200",method="get"} 1`,
		"/metrics": `reprise_requests_total{reprise_label="default",reprise_outcome="replayed"} 1`,
	} {
		if status, body := get(t, f.Admin+path, ""); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d\n%s", path, status, body)
		}
	}
	redis.Kill(t)
	await(t, "not ready without the store", func() bool {
		status, _ := get(t, f.Admin+"/readyz", "")
		return status == http.StatusServiceUnavailable
	})
	if got := post(t.Context(), nil, f.URL+"/orders", "k2", "pay"); got.status != http.StatusServiceUnavailable {
		t.Errorf("without the store: %+v", got)
	}
	if u.runs.Load() != 2 {
		t.Errorf("%d runs, want 2", u.runs.Load())
	}
	u.handle(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if status, _ := get(t, f.URL+"/unkeyed", ""); status != http.StatusBadGateway || strings.Contains(f.stderr.String(), "had no effect") {
		t.Errorf("a request without a key, whose response is lost: %d\n%s", status, f.stderr)
	}
	if status, _ := get(t, f.Admin+"/healthz", ""); status != http.StatusOK {
		t.Errorf("/healthz without the store: %d", status)
	}
	if err := os.Rename(access, access+".1"); err != nil {
		t.Fatal(err)
	}
	f.signal(syscall.SIGHUP)
	await(t, "a new access log", func() bool { _, err := os.Stat(access); return err == nil })
	lines, err := os.ReadFile(access + ".1")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(lines, []byte("\n")) < 2 || !bytes.Contains(lines, []byte(`"replayed":true`)) || bytes.Contains(lines, []byte("private")) || bytes.Contains(lines, []byte("secret")) {
		t.Errorf("the access log:\n%s", lines)
	}
}
