package repriseclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// hosts is one server under many names. It redirects requests for "/to/x" to the host x,
// and keeps the keys that each host received.
type hosts struct {
	client *http.Client

	mu     sync.Mutex
	keys   map[string][]string // by method and host
	bodies []string
}

func newHosts(t *testing.T, status int) *hosts {
	t.Helper()
	h := &hosts{keys: map[string][]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		body, _ := io.ReadAll(r.Body)
		h.bodies = append(h.bodies, string(body))
		h.keys[r.Method+" "+r.Host] = append(h.keys[r.Method+" "+r.Host], r.Header.Get("Idempotency-Key"))
		h.mu.Unlock()
		if host, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/to/"), "/"); ok && strings.HasPrefix(r.URL.Path, "/to/") {
			http.Redirect(w, r, "http://"+host+"/"+rest, status) //nolint:gosec // to where the test says
		}
	}))
	t.Cleanup(server.Close)
	base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	t.Cleanup(base.CloseIdleConnections)
	h.client = &http.Client{Transport: newTransport(t, base, Config{})}
	return h
}

// post sends a request to the host shop.test and returns the key that the other host was
// sent in the end.
func (h *hosts) post(t *testing.T, path, header, host string) string {
	t.Helper()
	ctx := t.Context()
	if header == "" {
		ctx = WithKey(ctx, "order-7")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.test"+path, strings.NewReader("hello"))
	must(t, err)
	if header != "" {
		req.Header.Set("Idempotency-Key", header)
	}
	resp, err := h.client.Do(req)
	must(t, err)
	_ = resp.Body.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := h.keys[resp.Request.Method+" "+host]
	if len(keys) == 0 {
		t.Fatalf("%s was sent nothing: %v", host, h.keys)
	}
	return keys[len(keys)-1]
}

// A redirect to another host does not give that host the key, with which it could ask the
// first one for the response. It gets a derived key, the same for every retry.
func TestRedirectToAnotherHostHidesTheKey(t *testing.T) {
	t.Parallel()
	h := newHosts(t, http.StatusTemporaryRedirect)
	const key = `"order-7"`
	away := h.post(t, "/to/other.test/there", "", "other.test")
	if len(away) < 32 || strings.Contains(away, "order-7") {
		t.Errorf("the other host got %q", away)
	}
	for name, got := range map[string]string{
		"a retry":                    h.post(t, "/to/other.test/there", "", "other.test"),
		"a key of the header":        h.post(t, "/to/other.test/there", key, "other.test"),
		"by way of another redirect": h.post(t, "/to/shop.test/to/other.test/there", "", "other.test"),
		"within the other host":      h.post(t, "/to/other.test/to/other.test/there", "", "other.test"),
	} {
		if got != away {
			t.Errorf("%s: the other host got %q, want %q", name, got, away)
		}
	}
	for _, host := range []string{"third.test", "notshop.test", "shop.test.evil.test", "test"} {
		if got := h.post(t, "/to/"+host+"/there", "", host); got == away || got == key || len(got) < 32 {
			t.Errorf("%s got %q", host, got)
		}
	}
	for _, host := range []string{"shop.test", "SHOP.test", "shop.test:8080", "eu.shop.test"} {
		if got := h.post(t, "/to/"+host+"/there", "", host); got != key {
			t.Errorf("%s got %q, want the key", host, got)
		}
	}
	if got := h.post(t, "/to/other.test/to/shop.test/there", "", "shop.test"); got != key {
		t.Errorf("back at the first host: %q, want the key", got)
	}
}

// Nor is the key sent where others can read it: a redirect from HTTPS to HTTP leads away,
// also on one host.
func TestARedirectToHTTPHidesTheKey(t *testing.T) {
	t.Parallel()
	var seen sync.Map
	plain := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen.Store("http", r.Header.Get("Idempotency-Key")) }))
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store("https", r.Header.Get("Idempotency-Key"))
		http.Redirect(w, r, plain.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(secure.Close)
	for _, own := range []string{"", `"order-7"`} {
		req, err := http.NewRequestWithContext(WithKey(t.Context(), "order-7"), http.MethodPost, secure.URL, strings.NewReader("hello"))
		must(t, err)
		if own != "" {
			req.Header.Set("Idempotency-Key", own)
		}
		resp, err := (&http.Client{Transport: newTransport(t, secure.Client().Transport, Config{})}).Do(req)
		must(t, err)
		_ = resp.Body.Close()
		first, _ := seen.Load("https")
		second, _ := seen.Load("http")
		if first != `"order-7"` || second == "" || strings.Contains(second.(string), "order-7") {
			t.Errorf("HTTPS got %v, HTTP got %v", first, second)
		}
	}
}

// A redirect that turns the request into a GET has no use for the key that the caller
// set.
func TestAGetAtAnotherHostHasNoKey(t *testing.T) {
	t.Parallel()
	h := newHosts(t, http.StatusSeeOther)
	if got := h.post(t, "/to/other.test/there", `"order-7"`, "other.test"); got != "" {
		t.Errorf("the other host got %q", got)
	}
}

// An [http.Client] follows 301 and 302 with a GET, which does not repeat the operation
// and may look like its success.
func TestARedirectToAGetIsAnError(t *testing.T) {
	t.Parallel()
	for status, followed := range map[int]bool{301: false, 302: false, 303: true} {
		h := newHosts(t, status)
		req := post(WithKey(t.Context(), "order-7"), t, strings.NewReader("hello"))
		req.URL.Host, req.URL.Path, req.Host = "shop.test", "/to/shop.test/there", ""
		resp, err := h.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		var redirect *RedirectError
		switch {
		case followed && (err != nil || len(h.keys["GET shop.test"]) != 1):
			t.Errorf("%d: %v, and %v was sent", status, err, h.keys)
		case followed:
		case !errors.As(err, &redirect) || redirect.Status != status || redirect.Location != "http://shop.test/there" || redirect.Key() != "order-7":
			t.Errorf("%d: got %+v", status, err)
		case len(h.keys) != 1 || !strings.Contains(err.Error(), redirect.Location) || NotSent(err):
			t.Errorf("%d: %v, and %v was sent", status, err, h.keys)
		}
	}
	h := newHosts(t, http.StatusFound)
	for path, want := range map[string]string{"/to/shop.test/key-order-7": "", "/to/shop.test/there": "http://shop.test/there"} {
		req := post(WithKey(t.Context(), "order-7"), t, nil)
		req.URL.Host, req.URL.Path, req.Host = "shop.test", path, ""
		var redirect *RedirectError
		if err := fails(t, h.client.Transport, req); !errors.As(err, &redirect) || redirect.Location != want {
			t.Errorf("%s: got %v, want the location %q, without the key", path, err, want)
		}
	}
}

// What an attempt before a redirect did stays unknown, although none of those after it
// got a connection. A redirect alone says that nothing ran at the host that sent it.
func TestRedirectDoesNotForgetTheAttemptBefore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		before []int // statuses; 0: the connection breaks
		sent   bool
	}{
		{[]int{307}, false},
		{[]int{308, 307}, false},
		{[]int{0, 307}, true},
		{[]int{503, 308}, true},
		{[]int{0, 307, 307}, true},
	} {
		base := &fake{answer: func(n int, _ *http.Request) (*http.Response, error) {
			switch {
			case n > len(test.before):
				return nil, &net.OpError{Op: "dial", Err: errNetwork}
			case test.before[n-1] == 0:
				return nil, errNetwork
			}
			return response(test.before[n-1], "", "Location", "http://other.test/"), nil
		}}
		client := &http.Client{Transport: newTransport(t, base, Config{MaxAttempts: 2, Delay: 1, MaxDelay: 1})}
		resp, err := client.Do(post(t.Context(), t, strings.NewReader("an order")))
		if err == nil {
			resp.Body.Close()
		}
		var unknown *UnknownOutcomeError
		if NotSent(err) == test.sent || errors.As(err, &unknown) != test.sent {
			t.Errorf("after %v the call ended with %v", test.before, err)
		}
	}
}
