package reprisecaddy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	reprisecaddy "github.com/reprise-go/reprise/caddy"
)

// load gives Caddy, in this process, a configuration in the notation of a Caddyfile.
func load(t *testing.T, caddyfile string) error {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), nil)
	if err != nil {
		return err
	}
	return caddy.Load(config, true)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o600))
}

func post(t *testing.T, url, key string) (status int, replayed bool, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("pay"))
	must(t, err)
	req.Header.Set("Authorization", "Bearer alice")
	if key != "" {
		req.Header.Set("Idempotency-Key", `"`+key+`"`)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	for errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) { // Caddy replaces its listener at a reload, and the former one may have had the connection
		req.Body, _ = req.GetBody()
		resp, err = transport.RoundTrip(req)
	}
	must(t, err)
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true", body
}

// The steps share the one Caddy of a process, so there is one test.
func TestCaddyRunsAKeyOnce(t *testing.T) {
	var runs atomic.Int64
	entered, held := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := runs.Add(1)
		if r.URL.Path == "/shop/lost" {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/shop/slow" {
			close(entered)
			<-held
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "run %d \x00\xff", n)
	}))
	t.Cleanup(upstream.Close)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	_ = l.Close()
	t.Setenv("REPRISE_STORE", "memory")
	file := filepath.Join(t.TempDir(), "reprise.toml")
	config := "upstream = '" + upstream.URL + "'\nscope = 'header:Authorization'\n"
	write(t, file, config)
	caddyfile := "{\n admin off\n persist_config off\n auto_https off\n}\nhttp://" + address + " {\n reprise /shop/* {env.REPRISE_STORE} " + file + "\n file_server\n}\n"
	must(t, load(t, caddyfile))
	t.Cleanup(func() { _ = caddy.Stop() })

	url := "http://" + address + "/shop/orders"
	status, replayed, body := post(t, url, "k1")
	if status != http.StatusCreated || replayed {
		t.Errorf("first: %d %t %q", status, replayed, body)
	}
	if s, r, again := post(t, url, "k1"); s != status || !r || !bytes.Equal(again, body) {
		t.Errorf("replay: %d %t %q", s, r, again)
	}
	if s, _, _ := post(t, "http://"+address+"/shop/lost", "k2"); s != http.StatusBadGateway {
		t.Errorf("a lost answer: %d, want 502", s)
	}
	if s, _, body := post(t, "http://"+address+"/shop/lost", "k2"); s != http.StatusConflict || !bytes.Contains(body, []byte("outcome-unknown")) {
		t.Errorf("after a lost answer: %d %s", s, body)
	}
	if s, _, _ := post(t, "http://"+address+"/other", "k1"); s != http.StatusNotFound {
		t.Errorf("beside the matcher: %d, want the 404 of file_server", s)
	}

	write(t, file, config+"[default]\nrequired = true\n")
	reprisecaddy.SetLinger(time.Millisecond)
	must(t, load(t, caddyfile))
	for reprisecaddy.Users("memory "+file) > 1 { // until the test times out
		time.Sleep(time.Millisecond) //nolint:forbidigo // Caddy runs on the real clock
	}
	reprisecaddy.SetLinger(time.Hour)
	if s, r, again := post(t, url, "k1"); s != status || !r || !bytes.Equal(again, body) {
		t.Errorf("replay after a reload: %d %t %q", s, r, again)
	}
	if s, _, _ := post(t, url, ""); s != http.StatusBadRequest {
		t.Errorf("without a key after the reload: %d, want 400", s)
	}
	if got := runs.Load(); got != 2 {
		t.Errorf("%d runs, want 2", got)
	}

	other := file + ".other"
	write(t, other, config)
	must(t, load(t, strings.Replace(caddyfile, " file_server", " reprise /other/* memory "+other+"\n file_server", 1)))
	if s, r, body := post(t, "http://"+address+"/other/shop/orders", "k1"); s != http.StatusCreated || r {
		t.Errorf("a key of another file: %d %t %q, want a run", s, r, body)
	}

	slow := make(chan int)
	go func() { s, _, _ := post(t, "http://"+address+"/shop/slow", "k3"); slow <- s }()
	<-entered
	must(t, load(t, caddyfile))
	close(held)
	if s := <-slow; s != http.StatusCreated {
		t.Errorf("a request that ran through a reload: %d, want 201", s)
	}
	if s, r, _ := post(t, "http://"+address+"/shop/slow", "k3"); s != http.StatusCreated || !r {
		t.Errorf("its retry: %d, replayed %t", s, r)
	}

	arriving, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	must(t, err)
	defer arriving.Close()
	answers := bufio.NewReader(arriving)
	_, _ = io.WriteString(arriving, "POST /shop/orders HTTP/1.1\r\nHost: "+address+"\r\nAuthorization: Bearer alice\r\nIdempotency-Key: \"k4\"\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // the handler reads the body now
		t.Fatalf("%q, %v", line, err)
	}
	must(t, load(t, caddyfile))
	_, _ = answers.ReadString('\n')
	_, _ = io.WriteString(arriving, "pay")
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, " 201 ") {
		t.Errorf("a request that arrived through a reload: %q, %v", line, err)
	}

	// A request of the former configuration may be in an earlier handler at a reload.
	arrived, let := make(chan struct{}), make(chan struct{})
	auth := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-let }))
	t.Cleanup(func() { close(let); auth.Close() })
	authorized := strings.Replace(caddyfile, " reprise", " forward_auth "+strings.TrimPrefix(auth.URL, "http://")+" {\n  uri /\n }\n reprise", 1)
	late := make(chan int)
	throughReload := func(key string) {
		t.Helper()
		must(t, load(t, authorized))
		go func() { s, _, _ := post(t, url, key); late <- s }()
		<-arrived
		must(t, load(t, caddyfile))
	}
	throughReload("k5")
	let <- struct{}{}
	if s := <-late; s != http.StatusCreated {
		t.Errorf("a request that was in an earlier handler at a reload: %d, want 201", s)
	}

	for name, invalid := range map[string]string{
		"a missing file name": "reprise memory", "an unknown store": "reprise mysql://secret " + file, "one argument more": "reprise memory " + file + " x",
		"a missing file": "reprise memory " + file + ".no", "an unreachable store": "reprise redis://:secret@127.0.0.1:1?prefix=orders: " + file,
		"a Redis without a prefix": "reprise redis://:secret@127.0.0.1:1 " + file,
	} {
		err := load(t, strings.Replace(caddyfile, "reprise /shop/* {env.REPRISE_STORE} "+file, invalid, 1))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, r, _ := post(t, url, "k1"); s != status || !r {
		t.Errorf("after invalid configurations: %d %t", s, r)
	}

	// A process that exits does not wait until a replaced handler has lingered. Caddy
	// waits for the requests before, and this one only shows that the handler is closed.
	throughReload("k6")
	reprisecaddy.Exit(t.Context())
	let <- struct{}{}
	if s := <-late; s != http.StatusServiceUnavailable {
		t.Errorf("a request after the exit: %d, want 503", s)
	}
	if got := reprisecaddy.Users("memory " + file); got != 1 {
		t.Errorf("%d handlers have the store after the exit, want the running one", got)
	}
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
