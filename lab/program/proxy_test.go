package program

import (
	"bufio"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// forwarder is a process of "reprise proxy".
type forwarder struct {
	URL   string `json:"url"`
	Admin string `json:"admin_url"`

	cmd    *exec.Cmd
	stderr *os.File
}

// forward starts the proxy and waits until it serves.
func forward(tb testing.TB, env []string, args ...string) *forwarder {
	tb.Helper()
	f := &forwarder{cmd: exec.CommandContext(context.WithoutCancel(tb.Context()), program(tb), append([]string{"--json", "proxy"}, args...)...)}
	var err error
	f.stderr, err = os.Create(filepath.Join(tb.TempDir(), "stderr"))
	labtest.Must(tb, err)
	tb.Cleanup(func() { _ = f.stderr.Close() })
	f.cmd.Env, f.cmd.Stderr = append(os.Environ(), env...), f.stderr
	stdout, err := f.cmd.StdoutPipe()
	labtest.Must(tb, err)
	labtest.Must(tb, f.cmd.Start())
	tb.Cleanup(func() { f.ends(syscall.SIGKILL) })
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(f); err != nil {
		tb.Fatalf("the proxy did not start: %v\n%s", err, f.logged())
	}
	return f
}

// logged returns what the proxy has logged.
func (f *forwarder) logged() string {
	text, _ := os.ReadFile(f.stderr.Name())
	return string(text)
}

// reloads makes the proxy read its files again, and waits until it says so.
func (f *forwarder) reloads(tb testing.TB, says string) {
	tb.Helper()
	before := strings.Count(f.logged(), says)
	labtest.Must(tb, f.cmd.Process.Signal(syscall.SIGHUP))
	labtest.Eventually(tb, says, func() bool { return strings.Count(f.logged(), says) > before })
}

// ends ends the proxy by signals and returns its exit code.
func (f *forwarder) ends(signals ...os.Signal) int {
	if f.cmd.ProcessState == nil {
		for _, s := range signals {
			_ = f.cmd.Process.Signal(s)
		}
		_ = f.cmd.Wait() // the exit code says more
	}
	return f.cmd.ProcessState.ExitCode()
}

// result is a response, or the error in its place.
type result struct {
	status int
	proto  string
	header http.Header
	body   []byte
	err    error
}

// String shows the response to the reader of a failure.
func (r *result) String() string {
	return fmt.Sprintf("status %d, header %v, body %.200q, error %v", r.status, r.header, r.body, r.err)
}

func (r *result) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// post sends a request with a key, over a new connection unless client is set.
func post(ctx context.Context, client *http.Client, url, key, body string) *result {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return &result{err: err}
	}
	req.Header.Set("Authorization", "Bearer alice")
	req.Header.Set("Idempotency-Key", `"`+key+`"`)
	return send(client, req)
}

// get fetches a page, for a host if it is not empty.
func get(tb testing.TB, address, host string) (int, string) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, address, http.NoBody)
	labtest.Must(tb, err)
	req.Host = host
	r := send(nil, req)
	labtest.Must(tb, r.err)
	return r.status, string(r.body)
}

func send(client *http.Client, req *http.Request) *result {
	if client == nil {
		client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	resp, err := client.Do(req)
	if err != nil {
		return &result{err: err}
	}
	defer resp.Body.Close()
	r := &result{status: resp.StatusCode, proto: resp.Proto, header: resp.Header}
	r.body, r.err = io.ReadAll(resp.Body)
	return r
}

// startUpstream starts a service that counts its runs.
func startUpstream(tb testing.TB, handle http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	tb.Helper()
	runs := new(atomic.Int64)
	u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		handle(w, r)
	}))
	tb.Cleanup(u.Close)
	return u, runs
}

// The proxy stops accepting requests and waits for those that run. A stream without a key
// may last for ever: it is cut when the drain time is over, and no record is lost by
// that.
func TestProxyDrains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key, drain string
		code       int
	}{"in time": {"k1", "1m", 0}, "too late": {"k1", "50ms", 3}, "a stream": {"", "50ms", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, held := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(held) })
			u, _ := startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
				if c.key == "" {
					_ = http.NewResponseController(w).Flush()
				}
				close(entered)
				select {
				case <-held:
				case <-r.Context().Done():
				}
				w.WriteHeader(http.StatusAccepted)
			})
			f := forward(t, nil, "--store", "memory", "--upstream", u.URL, "--unscoped", "--drain", c.drain, "--admin", "127.0.0.1:0")
			got := make(chan *result, 1)
			go func() {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+"/orders", http.NoBody)
				if c.key != "" {
					req.Header.Set("Idempotency-Key", c.key)
				}
				got <- send(nil, req)
			}()
			<-entered
			labtest.Must(t, f.cmd.Process.Signal(syscall.SIGTERM))
			if name == "in time" {
				labtest.Eventually(t, "no more connections", func() bool { return !listens(strings.TrimPrefix(f.URL, "http://")) })
				if status, _ := get(t, f.Admin+"/readyz", ""); status != http.StatusServiceUnavailable {
					t.Errorf("ready while it ends: %d", status)
				}
				held <- struct{}{}
			}
			if code := f.ends(); code != c.code {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, f.logged())
			}
			if r := <-got; (r.status == http.StatusAccepted) != (name == "in time") {
				t.Errorf("the request that ran: %v", r)
			}
		})
	}
}

func TestProxyTellsOperatorsItsState(t *testing.T) {
	t.Parallel()
	u, runs := startUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/lost" {
			panic(http.ErrAbortHandler)
		}
	})
	redis := servers.Redis.Start(t)
	access := filepath.Join(t.TempDir(), "access.log")
	f := forward(t, nil, "--store", "redis://"+redis.Addr(), "--prefix", "shop:", "--upstream", u.URL, "--unscoped", "--admin", "127.0.0.1:0", "--access-log", access)
	for range 2 {
		post(t.Context(), nil, f.URL+"/orders?token=secret", "private", "pay")
	}
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
	labtest.Eventually(t, "not ready without the store", func() bool {
		status, _ := get(t, f.Admin+"/readyz", "")
		return status == http.StatusServiceUnavailable
	})
	if got := post(t.Context(), nil, f.URL+"/orders", "k2", "pay"); got.status != http.StatusServiceUnavailable || runs.Load() != 2 {
		t.Errorf("without the store: %v, %d runs", got, runs.Load())
	}
	if status, _ := get(t, f.URL+"/lost", ""); status != http.StatusBadGateway || strings.Contains(f.logged(), "had no effect") {
		t.Errorf("a request without a key, whose response is lost: %d\n%s", status, f.logged())
	}
	if status, _ := get(t, f.Admin+"/healthz", ""); status != http.StatusOK {
		t.Errorf("/healthz without the store: %d", status)
	}
	labtest.Must(t, os.Rename(access, access+".1"))
	labtest.Must(t, f.cmd.Process.Signal(syscall.SIGHUP))
	labtest.Eventually(t, "a new access log", func() bool { _, err := os.Stat(access); return err == nil })
	lines, err := os.ReadFile(access + ".1")
	labtest.Must(t, err)
	for text, want := range map[string]bool{
		`"replayed":true`: true, `"path":"/orders"`: true, `"status":200`: true, `"policy":"default"`: true, "private": false, "secret": false, "alice": false,
	} {
		if strings.Contains(string(lines), text) != want {
			t.Errorf("the access log has %s: %t\n%s", text, !want, lines)
		}
	}
}

// Each bound of connections has a line in the log, a number, and an effect on /readyz. A
// trusted peer has no share, because its connections are those of its clients.
func TestProxyBoundsConnections(t *testing.T) {
	t.Parallel()
	u, _ := startUpstream(t, func(http.ResponseWriter, *http.Request) {})
	ask := func(f *forwarder) error { // on a connection that stays
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.URL, "http://"))
		labtest.Must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		_, err = conn.Read(make([]byte, 1))
		return err
	}
	args := []string{"--store", "memory", "--upstream", u.URL, "--unscoped", "--admin", "127.0.0.1:0", "--max-connections", "2", "--max-connections-per-peer", "1"}
	one, trusted := forward(t, nil, args...), forward(t, nil, append(args, "--trusted", "127.0.0.1")...)
	if err := ask(one); err != nil {
		t.Error(err)
	}
	if err := ask(one); err == nil {
		t.Error("a second connection of the peer was served")
	}
	if status, body := get(t, one.Admin+"/readyz", ""); status != http.StatusOK {
		t.Errorf("/readyz with room for others: %d %s", status, body)
	}
	for range 2 {
		if err := ask(trusted); err != nil {
			t.Error(err)
		}
	}
	if status, _ := get(t, trusted.Admin+"/readyz", ""); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz without room: %d", status)
	}
	for f, bound := range map[*forwarder]string{one: "max_connections_per_peer", trusted: "max_connections"} {
		_, body := get(t, f.Admin+"/metrics", "")
		if want := `reprise_proxy_bounds_met_total{bound="` + bound + `"} 1`; !strings.Contains(body, want) || !strings.Contains(body, "reprise_proxy_held_body_bytes 0") {
			t.Errorf("the metrics lack %s:\n%s", want, body)
		}
		if !strings.Contains(f.logged(), `"bound":"`+bound+`"`) {
			t.Errorf("the log lacks %s:\n%s", bound, f.logged())
		}
	}
	if _, body := get(t, trusted.Admin+"/metrics", ""); !strings.Contains(body, "reprise_proxy_connections 2") {
		t.Errorf("the metrics have another number of connections:\n%s", body)
	}
}

// certify writes a certificate for a name and 127.0.0.1 that is its own authority, and
// its key. If there are the files of another authority, that one has issued it, and its
// certificates follow.
func certify(tb testing.TB, left time.Duration, name, certFile, keyFile string, issuer ...string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	labtest.Must(tb, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(left),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	parent, signer, above := c, crypto.PrivateKey(key), []byte(nil)
	if len(issuer) > 0 {
		pair, err := tls.LoadX509KeyPair(issuer[0], issuer[1])
		labtest.Must(tb, err)
		parent, signer = pair.Leaf, pair.PrivateKey
		above, err = os.ReadFile(issuer[0])
		labtest.Must(tb, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	labtest.Must(tb, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	labtest.Must(tb, err)
	labtest.Must(tb, os.WriteFile(certFile, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), above...), 0o600))
	labtest.Must(tb, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// The upstream is verified: a failed handshake sends no request, so its retry runs.
func TestProxySpeaksEveryProtocol(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certify(t, time.Hour, "all", cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	labtest.Must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	u := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Upstream", r.Proto) }))
	u.TLS, u.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{pair}}, true
	u.StartTLS()
	t.Cleanup(u.Close)

	args := []string{"--store", "redis://" + servers.Redis.Shared(t).Addr(), "--prefix", labtest.RedisPrefix(), "--upstream", u.URL}
	strange := forward(t, []string{"SSL_CERT_FILE=" + dir + "/none", "SSL_CERT_DIR=" + dir + "/none"}, append(args, "--unscoped")...)
	if got := post(t.Context(), nil, strange.URL+"/orders", "k-HTTP/1.1", "pay"); got.status != http.StatusServiceUnavailable {
		t.Errorf("an unknown authority: %v, want 503", got)
	}
	known := []string{"SSL_CERT_FILE=" + cert}
	plain := forward(t, known, append(args, "--unscoped")...)
	secure := forward(t, known, append(args, "--scope-certificate", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert)...)
	for name, c := range map[string]struct {
		f         *forwarder
		protocols func(*http.Protocols)
		proto     string
	}{
		"HTTP/1.1":          {plain, func(p *http.Protocols) { p.SetHTTP1(true) }, "HTTP/1.1"},
		"h2c":               {plain, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, "HTTP/2.0"},
		"HTTP/1.1 with TLS": {secure, func(p *http.Protocols) { p.SetHTTP1(true) }, "HTTP/1.1"},
		"HTTP/2 with TLS":   {secure, func(p *http.Protocols) { p.SetHTTP2(true) }, "HTTP/2.0"},
	} {
		var protocols http.Protocols
		c.protocols(&protocols)
		client := &http.Client{Transport: &http.Transport{
			Protocols: &protocols, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}},
		}}
		first, again := post(t.Context(), client, c.f.URL+"/orders", "k-"+name, "pay"), post(t.Context(), client, c.f.URL+"/orders", "k-"+name, "pay")
		if first.status != http.StatusOK || first.proto != c.proto || first.header.Get("X-Upstream") != "HTTP/2.0" || first.replayed() || !again.replayed() {
			t.Errorf("%s: first %v, again %v", name, first, again)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	if got := post(t.Context(), client, secure.URL+"/orders", "k", "pay"); got.status != http.StatusForbidden {
		t.Errorf("without a certificate: %v, want 403", got)
	}
}

// A signal makes the proxy read its policies and its certificate again. Invalid files
// change nothing.
func TestProxyReloads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, file := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "reprise.toml")
	config := func(text string) {
		labtest.Must(t, os.WriteFile(file, []byte("upstream = 'http://127.0.0.1:1'\n"+text), 0o600))
	}
	config("scope = 'unverified-claim:sub'\n")
	certify(t, time.Hour, "first", cert, key)
	f := forward(t, nil, "--store", "memory", "--config", file, "--tls-cert", cert, "--tls-key", key)
	labtest.Eventually(t, "the warning", func() bool { return strings.Contains(f.logged(), "does not verify tokens") })
	served := func(name string, status int) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			if got := s.PeerCertificates[0].Subject.CommonName; got != name {
				return fmt.Errorf("the certificate is that of %q, want %q", got, name)
			}
			return nil
		}}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+"/orders", http.NoBody)
		labtest.Must(t, err)
		if got := send(client, req); got.status != status {
			t.Errorf("%v, want %d", got, status)
		}
	}
	served("first", http.StatusServiceUnavailable) // the upstream is away
	certify(t, time.Hour, "second", cert, key)
	config("scope = 'unscoped'\n[default]\nrequired = true\n")
	f.reloads(t, `"msg":"reloaded"`)
	served("second", http.StatusBadRequest) // a key is required
	certify(t, time.Hour, "third", cert, key)
	config("scope = 'unscoped'\n[default]\nfail_open = true\n")
	f.reloads(t, `"msg":"not reloaded"`)
	served("second", http.StatusBadRequest)
	config("scope = 'unscoped'\n")
	labtest.Must(t, os.WriteFile(cert, []byte("nonsense"), 0o600))
	f.reloads(t, `"msg":"not reloaded"`)
	served("second", http.StatusBadRequest)
	certify(t, time.Hour, "fourth", cert, key)
	config("scope = 'unscoped'\n[default]\nscope = 'certificate'\n")
	f.reloads(t, "no client has a verified certificate without --tls-client-ca")
}
