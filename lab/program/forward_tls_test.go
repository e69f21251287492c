package program

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	a := &authority{}
	pair := a.issue(tb, "CA")
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// issue returns a certificate for a name and 127.0.0.1; the first one is the authority's.
func (a *authority) issue(tb testing.TB, name string) tls.Certificate {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: a.cert == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	parent, parentKey := a.cert, a.key
	if parent == nil {
		parent, parentKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		tb.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// writePair writes the files of a certificate.
func writePair(tb testing.TB, pair tls.Certificate, cert, key string) {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		tb.Fatal(err)
	}
	write(tb, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	write(tb, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

func TestProxySpeaksEveryProtocolOnBothSides(t *testing.T) {
	t.Parallel()
	u := startUpstream(t)
	u.handle(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Upstream", r.Proto) })
	ca, dir := newAuthority(t), t.TempDir()
	cert, key, root := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")
	writePair(t, ca.issue(t, "proxy"), cert, key)
	writePair(t, tls.Certificate{Certificate: [][]byte{ca.cert.Raw}, PrivateKey: ca.key}, root, filepath.Join(dir, "ca-key.pem"))
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)

	for scheme, upstream := range map[string]string{"http": "HTTP/1.1", "h2c": "HTTP/2.0"} {
		args := []string{"--store", "memory", "--upstream", strings.Replace(u.URL, "http", scheme, 1)}
		plain := forward(t, nil, append(args, "--unscoped")...)
		secure := forward(t, nil, append(args, "--scope-certificate", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", root)...)
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
				Protocols: &protocols, DisableKeepAlives: true,
				TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{ca.issue(t, name)}},
			}}
			first, again := post(t.Context(), client, c.f.URL+"/orders", "k-"+name, "pay"), post(t.Context(), client, c.f.URL+"/orders", "k-"+name, "pay")
			if first.status != http.StatusOK || first.proto != c.proto || first.header.Get("X-Upstream") != upstream || !again.replayed() {
				t.Errorf("%s to %s: first %+v, again %+v", name, scheme, first, again)
			}
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
		if got := post(t.Context(), client, secure.URL+"/orders", "k", "pay"); got.status != http.StatusForbidden {
			t.Errorf("without a certificate: %+v, want 403", got)
		}
	}
}

func TestProxyReloadsCertificates(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, ca.issue(t, "first"), cert, key)
	file, config := filepath.Join(dir, "reprise.toml"), "upstream = 'http://127.0.0.1:1'\nscope = 'unscoped'\n"
	write(t, file, config)
	f := forward(t, nil, "--store", "memory", "--config", file, "--tls-cert", cert, "--tls-key", key)
	served := func() string {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.URL, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := served(); got != "first" {
		t.Errorf("it serves the certificate of %q", got)
	}
	writePair(t, ca.issue(t, "second"), cert, key)
	f.signal(syscall.SIGHUP)
	await(t, "the second certificate", func() bool { return served() == "second" })
	refused := 0
	refuse := func(certificate, policies string) { // an invalid file changes nothing
		t.Helper()
		write(t, file, policies)
		if certificate != "" {
			write(t, cert, certificate)
		}
		f.signal(syscall.SIGHUP)
		refused++
		await(t, "the refusal", func() bool { return strings.Count(f.stderr.String(), `"msg":"not reloaded"`) == refused })
		if got := served(); got != "second" {
			t.Errorf("after a file that is invalid it serves the certificate of %q", got)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		if got := post(t.Context(), client, f.URL+"/orders", "", "pay"); got.status != http.StatusServiceUnavailable {
			t.Errorf("after a file that is invalid: %+v, want the 503 of an upstream that is away", got)
		}
	}
	writePair(t, ca.issue(t, "third"), cert, key)
	refuse("", "nonsense")
	refuse("nonsense", config+"[default]\nrequired = true\n")
}

// A failed handshake sends no request, so its retry runs.
func TestProxyVerifiesItsUpstream(t *testing.T) {
	t.Parallel()
	ca, dir := newAuthority(t), t.TempDir()
	root := filepath.Join(dir, "ca.pem")
	writePair(t, tls.Certificate{Certificate: [][]byte{ca.cert.Raw}, PrivateKey: ca.key}, root, filepath.Join(dir, "ca-key.pem"))
	u := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Upstream", r.Proto) }))
	u.TLS = &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "upstream")}}
	u.EnableHTTP2 = true
	u.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	u.StartTLS()
	t.Cleanup(u.Close)

	redis := []string{"--store", "redis://" + servers.Redis.Shared(t).Addr(), "--prefix", labtest.RedisPrefix(), "--upstream", u.URL, "--unscoped"}
	strange := forward(t, []string{"SSL_CERT_FILE=" + filepath.Join(dir, "none"), "SSL_CERT_DIR=" + dir + "/none"}, redis...)
	if got := post(t.Context(), nil, strange.URL+"/orders", "k1", "pay"); got.status != http.StatusServiceUnavailable {
		t.Errorf("an unknown authority: %+v, want 503", got)
	}
	known := forward(t, []string{"SSL_CERT_FILE=" + root}, redis...)
	if got := post(t.Context(), nil, known.URL+"/orders", "k1", "pay"); got.status != http.StatusOK || got.header.Get("X-Upstream") != "HTTP/2.0" {
		t.Errorf("the retry to a verified upstream: %+v", got)
	}
}
