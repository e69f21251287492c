package repriseclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// fake is a base transport that responds with a function, and keeps the requests.
type fake struct {
	answer func(n int, req *http.Request) (*http.Response, error)

	mu   sync.Mutex
	sent []sent
}

// sent is the request of one attempt.
type sent struct {
	header  http.Header
	body    string
	length  int64
	trailer http.Header
}

func (f *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, errors.Join(err, req.Body.Close())
		}
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	f.sent = append(f.sent, sent{req.Header.Clone(), string(body), req.ContentLength, req.Trailer.Clone()})
	n := len(f.sent)
	f.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	resp, err := f.answer(n, req)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// attempts returns how many there were.
func (f *fake) attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sent)
}

// keys returns the values of the header that were sent, each once.
func (f *fake) keys(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var keys []string
	for _, s := range f.sent {
		if v := strings.Join(s.header.Values(name), "|"); len(keys) == 0 || keys[len(keys)-1] != v {
			keys = append(keys, v)
		}
	}
	return keys
}

// response makes one. Fields are pairs of name and value.
func response(status int, body string, fields ...string) *http.Response {
	r := &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	for pair := range slices.Chunk(fields, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	return r
}

// refusal is a response of a service that uses Reprise.
func refusal(status int, code Code, fields ...string) *http.Response {
	return response(status, `{"code":"`+string(code)+`"}`, append(fields, "Content-Type", "application/problem+json")...)
}

// inBubble runs a subtest beside the others, on a clock of its own.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

var errNetwork = errors.New("connection reset by peer")

// failTimes fails the first attempts and answers the next.
func failTimes(n int) func(int, *http.Request) (*http.Response, error) {
	return func(attempt int, _ *http.Request) (*http.Response, error) {
		if attempt <= n {
			return nil, errNetwork
		}
		return response(http.StatusCreated, "created"), nil
	}
}

func newTransport(tb testing.TB, base http.RoundTripper, c Config) *Transport {
	tb.Helper()
	transport, err := NewTransport(base, c)
	must(tb, err)
	return transport
}

func post(ctx context.Context, tb testing.TB, body io.Reader) *http.Request {
	tb.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.example/orders", body)
	must(tb, err)
	return req
}

// do makes the call, reads its response, and fails the test if there is none.
func do(tb testing.TB, transport http.RoundTripper, req *http.Request) (*http.Response, string) {
	tb.Helper()
	resp, err := transport.RoundTrip(req)
	must(tb, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(tb, err)
	return resp, string(body)
}

// fails makes the call, and fails the test if there is a response.
func fails(tb testing.TB, transport http.RoundTripper, req *http.Request) error {
	tb.Helper()
	resp, err := transport.RoundTrip(req)
	if err == nil {
		defer resp.Body.Close()
		tb.Fatalf("answered with %d, want an error", resp.StatusCode)
	}
	return err
}

// closing is a body that has no GetBody and notes that it was closed.
type closing struct {
	io.Reader
	mu     sync.Mutex
	closed int
}

func (c *closing) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (c *closing) times() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// must fails the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
