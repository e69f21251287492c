package program

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// An operator has a client's key, and who the client is as the client says it. find gets
// the same record from them, through the proxy's file, as the access log names.
func TestFindReadsTheFileOfAProxy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, file := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "proxy.toml")
	certify(t, time.Hour, "client", cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	labtest.Must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	upstream, _ := startUpstream(t, func(http.ResponseWriter, *http.Request) {})
	labtest.Must(t, os.WriteFile(file, []byte(`upstream = '`+upstream.URL+`'
scope = 'header:X-Tenant'
[[route]]
name = 'refunds'
match = ['/refunds']
endpoint = 'refunds'
[[route]]
name = 'tokens'
match = ['/tokens']
scope = 'unverified-claim:sub'
[[route]]
name = 'numbers'
match = ['/numbers']
scope = 'unverified-claim:n'
[[route]]
name = 'open'
match = ['/open']
scope = 'unscoped'
endpoint = 'open'
[[route]]
name = 'machines'
match = ['/machines']
scope = 'certificate'
`), 0o600))
	store := []string{"--store", "redis://" + servers.Redis.Shared(t).Addr(), "--prefix", labtest.RedisPrefix()}
	f := forward(t, nil, append(store, "--config", file, "--access-log", "-", "--admin", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert)...)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}}}
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://login.example","sub":"alice","n":17}`)) + ".c2ln"
	ids := map[string]string{}
	for _, path := range []string{"/pay", "/refunds", "/tokens", "/numbers", "/open", "/machines"} {
		for _, body := range []string{"10", "20"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL+path, strings.NewReader(body))
			labtest.Must(t, err)
			req.Header = http.Header{"Idempotency-Key": {`"order-17"`}, "X-Tenant": {"acme"}, "Authorization": {"Bearer " + token}}
			labtest.Must(t, send(client, req).err)
		}
		line := regexp.MustCompile(`"path":"` + path + `".*"status":422.*"id":"([0-9a-f]{12})","code":"key-reused"`)
		labtest.Eventually(t, "the line of "+path, func() bool {
			if found := line.FindStringSubmatch(f.logged()); found != nil {
				ids[path] = found[1]
			}
			return ids[path] != ""
		})
	}
	labtest.Eventually(t, "a check of the store in the metrics", func() bool {
		_, metrics := get(t, f.Admin+"/metrics", "")
		return strings.Contains(metrics, `reprise_store_unchecked{reprise_engine="proxy"} 0`)
	})
	find := func(code int, stdin string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program(t), append([]string{"find", "--config", file}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code || strings.Contains(string(out), "order-17") {
			t.Errorf("%v: exit code %d, want %d\n%s", args, got, code, out)
		}
		return string(out)
	}
	for _, c := range []struct {
		stdin string
		args  []string
		paths []string
	}{
		{"order-17", []string{"--field", "X-Tenant: acme"}, []string{"/pay", "/refunds"}},
		{"acme\n\"order-17\"\n", []string{"--field", "x-tenant"}, []string{"/pay", "/refunds"}},
		{"Bearer " + token + "\norder-17", []string{"--field", "Authorization"}, []string{"/tokens", "/numbers"}},
		{"order-17", []string{"--claim", "iss=https://login.example", "--claim", "n:=17"}, []string{"/numbers"}},
		{"order-17", []string{"--claim", "iss=https://login.example", "--claim", "sub=alice"}, []string{"/tokens"}},
		{"order-17", []string{"--certificate", cert}, []string{"/machines"}},
	} {
		out, printed := find(0, c.stdin, append(store, c.args...)...), find(0, c.stdin, append(c.args, "--id-only")...)
		for path, id := range ids {
			for from, text := range map[string]string{"its records": out, "--id-only": printed} {
				if want := path == "/open" || strings.Contains(strings.Join(c.paths, " "), path); strings.Contains(text, id) != want {
					t.Errorf("%v: %s have the ID %s of %s: %v, want %v\n%s", c.args, from, id, path, !want, want, text)
				}
			}
		}
	}
	for _, c := range []struct {
		code  int
		stdin string
		args  []string
		want  string
	}{
		{0, "order-17", append(store, "--field", "X-Tenant: other"), "! not looked at, because the client's scope is not known there: tokens (scope unverified-claim:sub), "},
		{1, "another", append(store, "--field", "X-Tenant: acme"), "is it one of the policies that were not looked at, is --config the file"},
		{0, "order-17", []string{"--id-only", "--claim", "sub=alice"}, "the token of --claim has no issuer"},
		{0, "order-17", append(store, "--json", "--field", "X-Tenant: acme"), "[\n  {"},
		{2, "order-17", []string{"--field", "Authorization: Bearer x"}, "others can see a command line"},
		{2, "order-17", []string{"--field", "X-Api-Key: x"}, "others can see a command line"},
		{2, "order-17", []string{"--field", "X-Tenant"}, "standard input has too few lines: want 2"},
		{2, "order-17", []string{"--claim", "sub"}, "--claim is not NAME=VALUE"},
		{2, "order-17", []string{"--certificate", file}, "has no certificate in PEM"},
		{2, "order-17", []string{"--scope", "acme"}, "[scope unscoped config]"},
	} {
		if out := find(c.code, c.stdin, c.args...); !strings.Contains(out, c.want) {
			t.Errorf("%v: want %q\n%s", c.args, c.want, out)
		}
	}
}
