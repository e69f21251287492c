package program

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A request whose payment a real service would find, and the policy of another path would
// let pass, does not reach it: nginx and Node decode the path, and WSGI folds fields.
func TestProxyDecidesByThePathThatItsServiceReads(t *testing.T) {
	t.Parallel()
	for language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := startService(t, language)
			file := filepath.Join(t.TempDir(), "reprise.toml")
			must(t, os.WriteFile(file, fmt.Appendf(nil, `upstream = '%s'
scope = 'header:X-Tenant'
[default]
required = true
[[route]]
match = ['/v1/imports/']
unkeyed = true
`, s.url), 0o600))
			f := forward(t, nil, "--store", "memory", "--config", file)
			send := func(request string) int {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.URL, "http://"))
				must(t, err)
				defer conn.Close()
				_, err = io.WriteString(conn, request+"\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n")
				must(t, err)
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				must(t, err)
				_ = resp.Body.Close()
				return resp.StatusCode
			}
			const keyed = "POST /v1/payments HTTP/1.1\r\nIdempotency-Key: k1\r\nX-Tenant: a"
			for _, request := range []string{
				"POST /v1/imports/..%2fpayments HTTP/1.1", "POST /v1/imports/..%5cpayments HTTP/1.1", `POST /v1/imports/..\payments HTTP/1.1`,
				"POST /v1/imports/%2e%2e/payments HTTP/1.1", "POST /v1/imports/%252e%252e/payments HTTP/1.1", "POST /v1/imports//../../payments HTTP/1.1",
				"POST /v1/imports/..%2fpayments;x HTTP/1.1", "POST /v1/imports/%2e%2e/payments/%252e%252e/payments HTTP/1.1",
				keyed + "\r\nX_Tenant: b", keyed + "\r\nConnection: X-Tenant",
			} {
				if status := send(request); status != http.StatusBadRequest {
					t.Errorf("%s: %d, want 400", request, status)
				}
			}
			for range 2 {
				if status := send(keyed); status != http.StatusCreated {
					t.Errorf("the payment: %d", status)
				}
			}
			var effects []byte
			await(t, "the payment", func() bool { // nginx writes its line after the response
				var err error
				effects, err = os.ReadFile(s.effects)
				return err == nil && strings.Contains(string(effects), "/v1/payments a\n")
			})
			if string(effects) != "/v1/payments a\n" {
				t.Errorf("the service got\n%s", effects)
			}
		})
	}
}
