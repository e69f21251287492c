package proxy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

func token(payload string) func(*http.Request) {
	return header("Authorization", "Bearer e30."+base64.RawURLEncoding.EncodeToString([]byte(payload))+".c2ln")
}

func TestScopesKeepClientsApart(t *testing.T) {
	t.Parallel()
	type change = func(*http.Request)
	for name, c := range map[string]struct {
		scope   string
		same    []change // as the first one
		other   []change
		refused []change
	}{
		"header": {
			"header:Authorization",
			[]change{header("Authorization", "a"), header("Authorization", "a")},
			[]change{header("Authorization", "b"), header("Authorization", "A")},
			[]change{header("Authorization"), header("Authorization", ""), header("Authorization", "a", "a")},
		},
		"claim": {
			"unverified-claim:sub",
			[]change{token(`{"sub":"a","iat":1}`), token(`{"sub":"a","iat":2}`)},
			[]change{token(`{"sub":"b"}`), token(`{"sub":"a","iss":"other"}`), token(`{"sub":12}`), token(`{"sub":13}`), token(`{"sub":"12"}`)},
			[]change{token(`{}`), token(`{"sub":""}`), token(`{"sub":["a"]}`), token(`no`), header("Authorization", "Basic eDp5"), header("Authorization", "Bearer a.b")},
		},
		"claim with a URL for a name": {
			"unverified-claim:https://acme.example/tenant",
			[]change{token(`{"https://acme.example/tenant":"a"}`)},
			[]change{token(`{"https://acme.example/tenant":"b"}`)},
			nil,
		},
		"unscoped":                {"unscoped", []change{header("Authorization", "a"), header("Authorization", "b"), header("Authorization")}, nil, nil},
		"certificate without TLS": {"certificate", nil, nil, []change{header("Authorization", "a")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, "upstream = 'http://UPSTREAM'\nscope = '"+c.scope+"'\n")
			for i, f := range c.same {
				if got := b.post("/orders", "k1", f); got.status != http.StatusCreated || got.replayed() != (i > 0) {
					t.Errorf("same %d: %d %v", i, got.status, got.header)
				}
			}
			for i, f := range c.other {
				if got := b.post("/orders", "k1", f); got.status != http.StatusCreated || got.replayed() {
					t.Errorf("other %d: %d %v", i, got.status, got.header)
				}
			}
			for i, f := range c.refused {
				if got := b.post("/orders", "k1", f); got.status != http.StatusForbidden {
					t.Errorf("refused %d: %d, want 403", i, got.status)
				}
			}
		})
	}
}

// A renewed certificate has another serial number and key.
func TestCertificateScopeOutlivesARenewal(t *testing.T) {
	t.Parallel()
	b := setup(t, "upstream = 'http://UPSTREAM'\nscope = 'certificate'\n")
	ca, caKey := issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	front := httptest.NewUnstartedServer(b.handler)
	front.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	b.url = front.URL

	spiffe := func(path string) *x509.Certificate {
		return &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: path}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	}
	named := func(name string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	}
	hosts := func(names ...string) *x509.Certificate {
		return &x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	}
	for i, c := range []struct {
		of       *x509.Certificate
		status   int
		replayed bool
	}{
		{named("alice"), 201, false},
		{named("alice"), 201, true},
		{named("bob"), 201, false},
		{spiffe("/a"), 201, false},
		{spiffe("/a"), 201, true},
		{spiffe("/b"), 201, false},
		{hosts("a.example", "b.example"), 201, false},
		{hosts("b.example", "a.example"), 201, true},
		{hosts("a.example"), 201, false},
		{&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, 403, false},
		{nil, 403, false},
	} {
		transport := front.Client().Transport.(*http.Transport).Clone()
		transport.DisableKeepAlives = true
		if c.of != nil {
			cert, key := issue(t, c.of, ca, caKey)
			transport.TLSClientConfig.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}
		}
		b.client = &http.Client{Transport: transport}
		if got := b.post("/orders", "k1"); got.status != c.status || got.replayed() != c.replayed {
			t.Errorf("certificate %d: %d %v %v, want %d, replayed %t", i, got.status, got.header, got.err, c.status, c.replayed)
		}
	}
}

func issue(t *testing.T, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return cert, key
}
