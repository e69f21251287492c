package proxy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

func TestForwardedFieldsAreThoseOfTrustedPeers(t *testing.T) {
	t.Parallel()
	const own = `{"X-Forwarded-For":["127.0.0.1"],"X-Forwarded-Host":["PROXY"],"X-Forwarded-Proto":["http"]}`
	sent := http.Header{
		"X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Host": {"shop.example"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Port": {"443"},
		"X-Real-Ip": {"192.0.2.1"}, "X-Original-Url": {"/v1/payments"}, "X-Rewrite-Url": {"/v1/payments"},
		"X_forwarded_for": {"192.0.2.2"}, "X_real-Ip": {"192.0.2.2"}, "X.original.url": {"/v1/payments"},
	}
	for trusted, want := range map[string]string{
		"":                                 own,
		"trusted_addresses = ['10.0.0.1']": own,
		"trusted_addresses = ['127.0.0.0/8']": `{"X-Forwarded-For":["192.0.2.1, 127.0.0.1"],"X-Forwarded-Host":["shop.example"],"X-Forwarded-Port":["443"],"X-Forwarded-Proto":["https"],` +
			`"X-Original-Url":["/v1/payments"],"X-Real-Ip":["192.0.2.1"],"X-Rewrite-Url":["/v1/payments"]}`,
	} {
		b := setup(t, trusted+"\n"+plain)
		b.handle(func(w http.ResponseWriter, r *http.Request) {
			maps.DeleteFunc(r.Header, func(name string, _ []string) bool { return name[0] != 'X' })
			_ = json.NewEncoder(w).Encode(r.Header)
			_, _ = io.WriteString(w, r.Host) //nolint:gosec // a test
		})
		got := b.post("/orders", "", func(r *http.Request) { maps.Copy(r.Header, sent) })
		host := strings.TrimPrefix(b.url, "http://")
		if want := strings.ReplaceAll(want, "PROXY", host) + "\n" + host; string(got.body) != want {
			t.Errorf("%q: the upstream got %s, want %s", trusted, got.body, want)
		}
	}
}

func TestWebsocketsPass(t *testing.T) {
	t.Parallel()
	b := setup(t, plain)
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	})
	conn := b.dial("GET /live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nIdempotency-Key: \"k1\"\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil) //nolint:bodyclose // it has none
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", resp, err)
	}
	_, _ = conn.Write([]byte("ping"))
	echo := make([]byte, 4)
	if _, err := io.ReadFull(in, echo); err != nil || string(echo) != "ping" {
		t.Errorf("got %q, %v", echo, err)
	}
}

// The body of a request with a key was read before, so the upstream has no say.
func TestExpectIsAnsweredByTheProxy(t *testing.T) {
	t.Parallel()
	b := setup(t, plain)
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "expect "+r.Header.Get("Expect")) //nolint:gosec // a test
	})
	for key, want := range map[string]string{"": "expect 100-continue", "k1": "expect "} {
		if got := b.post("/orders", key, header("Expect", "100-continue")); string(got.body) != want {
			t.Errorf("with the key %q the upstream got %q, want %q", key, got.body, want)
		}
	}
}

// A client that speaks HTTP/2 through the proxy would bypass it. A websocket begins with
// GET: the response to an upgrade by another method would have a length.
func TestOnlyWebsocketUpgradesPass(t *testing.T) {
	t.Parallel()
	b := setup(t, plain)
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "upgrade %q, connection %q, settings %q", r.Header["Upgrade"], r.Header["Connection"], r.Header["Http2-Settings"]) //nolint:gosec // a test
	})
	for _, c := range [][2]string{{"GET", "h2c"}, {"GET", "websocket, h2c"}, {"GET", "TLS/1.0"}, {"POST", "websocket"}} {
		method, protocol := c[0], c[1]
		got := b.post("/orders", "", func(r *http.Request) { r.Method = method }, header("Connection", "Upgrade, HTTP2-Settings"), header("Upgrade", protocol), header("Http2-Settings", "AAMAAABk"))
		if want := "upgrade [], connection [], settings []"; string(got.body) != want {
			t.Errorf("%s: the upstream got %s %v, want %s", c, got.body, got.err, want)
		}
	}
}

// A stream in both directions reaches the other end while it lasts.
func TestStreamsWithoutAKeyPass(t *testing.T) {
	t.Parallel()
	b := setup(t, "body_timeout = '1ms'\n"+strings.ReplaceAll(plain, "http:", "h2c:"))
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		_ = control.Flush()
		buf := make([]byte, 4)
		for {
			if _, err := io.ReadFull(r.Body, buf); err != nil {
				return
			}
			_, _ = w.Write(buf)
			_ = control.Flush()
		}
	})
	b.speakHTTP2()
	body, send := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/stream", body)
	must(t, err)
	resp, err := b.client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	for _, part := range []string{"one.", "two."} {
		_, _ = send.Write([]byte(part))
		got := make([]byte, 4)
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != part {
			t.Fatalf("got %q, %v, want %q", got, err, part)
		}
	}
	_ = send.Close()
}
