package proxy_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// raw sends the bytes of a request on a connection, and returns the response and whether
// the proxy closes the connection after it. A test writes each byte itself, because a
// client would not send such requests.
func (b *bundle) raw(request string) (got *answer, closed bool) {
	b.t.Helper()
	conn := b.dial(request)
	defer conn.Close()
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	for err == nil && resp.StatusCode < 200 {
		resp, err = http.ReadResponse(in, nil)
	}
	if err != nil {
		b.t.Fatalf("%q: %v", request, err)
	}
	defer resp.Body.Close()
	got = &answer{status: resp.StatusCode, header: resp.Header}
	got.body, got.err = io.ReadAll(resp.Body)
	return got, resp.Close
}

const routed = `upstream = 'http://UPSTREAM'
scope = 'header:X-Tenant'
[default]
required = true
[[route]]
match = ['/v1/imports/']
unkeyed = true
[[route]]
match = ['own.example/v1/payments']
endpoint = 'own'
fingerprint_headers = ['X-Version']
`

// A service may decode a path, split it or fold the names of fields in another way than
// the proxy. Where that could make another policy, key or scope of a request, it does not
// reach the service.
func TestRequestThatAServiceMayReadOtherwiseIsRefused(t *testing.T) {
	t.Parallel()
	const host, key, own = "Host: a.example\r\n", "Idempotency-Key: k1\r\nX-Tenant: a\r\n", "Host: own.example\r\n"
	for name, c := range map[string]struct {
		line   string
		fields string
	}{
		"an escaped slash":                    {"POST /v1/imports/..%2fpayments", host},
		"an escaped backslash":                {"POST /v1/imports/..%5Cpayments", host},
		"a backslash":                         {`POST /v1/imports/..\payments`, host},
		"dots":                                {"POST /v1/imports/../payments", host},
		"escaped dots":                        {"POST /v1/imports/.%2e/payments", host},
		"dots escaped twice":                  {"POST /v1/imports/%252e%252e/payments", host},
		"parameters":                          {"POST /v1/imports/..;/payments", host},
		"escaped parameters":                  {"POST /v1/imports/..%3b/payments", host},
		"dots that only one decoding removes": {"POST /v1/imports/%2e%2e/payments/%252e%252e/imports/x", host},
		"an empty segment":                    {"POST /v1/imports//../payments", host},
		"an end of the path":                  {"POST /v1/imports/..%2fpayments%3fx", host},
		"a fragment":                          {"POST /v1/imports/x#/../../payments", host},
		"an end of a string in C":             {"POST /v1/imports/x%00", host},
		"a byte that is not UTF-8":            {"POST /v1/imports/..%c0%afpayments", host},
		"a URL without a path":                {"POST http:v1/imports/x", host},
		"a method in lower case":              {"post /v1/payments", host},
		"another method":                      {"GET /v1/payments", host + "X_HTTP_Method_Override: post\r\n"},
		"a host with two ports":               {"POST /v1/payments", "Host: own.example:80:80\r\n" + key},
		"a host with an empty label":          {"POST /v1/payments", "Host: own.example..\r\n" + key},
		"another scope after folding":         {"POST /v1/payments", host + key + "X_Tenant: b\r\n"},
		"another scope in other signs":        {"POST /v1/payments", host + key + "X.Tenant: b\r\n"},
		"another key after folding":           {"POST /v1/payments", host + key + "Idempotency_Key: k2\r\n"},
		"another version after folding":       {"POST /v1/payments", own + key + "X_Version: 2\r\n"},
		"a scope for this connection only":    {"POST /v1/payments", host + key + "Connection: close, x-tenant\r\n"},
		"a key for this connection only":      {"POST /v1/payments", host + key + "Connection: Idempotency-Key\r\n"},
	} {
		b := setup(t, routed)
		got, _ := b.raw(c.line + " HTTP/1.1\r\n" + c.fields + "Content-Length: 0\r\n\r\n")
		if b.runs.Load() > 0 {
			t.Errorf("%s: the request reached the service", name)
		}
		if got.status != http.StatusBadRequest || !strings.Contains(string(got.body), `"code":"request-invalid"`) || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %v %s, want 400 request-invalid", name, got.status, got.header, got.body)
		}
	}
}

// A request that no reading makes one of a policy passes as it came.
func TestUnusualRequestPassesWhereItChoosesNoPolicy(t *testing.T) {
	t.Parallel()
	for config, lines := range map[string][]string{
		routed: {"GET /a%2Fb//c;v=1", "DELETE /v1/../x", "PUT /x%252e", "POST /v1/imports/a%20b", "POST /v1/imports/%7Ea/"},
		plain:  {"POST /a%2Fb//c;v=1"},
	} {
		for _, line := range lines {
			b := setup(t, config)
			if got, _ := b.raw(line + " HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n"); got.status != http.StatusCreated || b.runs.Load() != 1 {
				t.Errorf("%s: got %d %s", line, got.status, got.body)
			}
		}
	}
}

func TestEverySpellingOfAHostIsOneHost(t *testing.T) {
	t.Parallel()
	b := setup(t, routed)
	seen := make(chan string, 1)
	b.handle(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Host })
	for i, host := range []string{"Own.Example", "own.example", "OWN.EXAMPLE.", "own.example:"} {
		got, _ := b.raw("POST /v1/payments HTTP/1.1\r\nHost: " + host + "\r\nIdempotency-Key: k1\r\nX-Tenant: a\r\nContent-Length: 0\r\n\r\n")
		if got.status != http.StatusOK || got.replayed() != (i > 0) {
			t.Errorf("%s: got %d %v %s", host, got.status, got.header, got.body)
		}
	}
	b.wantRuns(1)
	if host := <-seen; host != "own.example" {
		t.Errorf("the service got the host %q", host)
	}
}

// A proxy in front may have taken the length for the end of the body, and what follows
// for another client's request.
func TestBodyWhoseEndIsInDoubtClosesTheConnection(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"a length beside chunks": "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks in HTTP/1.0":     "POST /orders HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		for _, key := range []string{"", "Authorization: a\r\nIdempotency-Key: k1\r\n"} {
			b := setup(t, plain)
			b.handle(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusEarlyHints) // ReverseProxy clears the header with it
				w.WriteHeader(http.StatusCreated)
			})
			line, rest, _ := strings.Cut(request, "\r\n")
			if got, closed := b.raw(line + "\r\n" + key + rest); !closed {
				t.Errorf("%s, %q: got %d %v, and the connection stays", name, key, got.status, got.header)
			}
		}
	}
}
