package adaptertest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
)

// newClient returns a client of net/http that sends requests unchanged and returns raw
// responses.
func newClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// try sends a call with the client of net/http. It may run in any goroutine.
func (srv *server) try(c call) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(srv.Context()), srv.fixture.Patience)
	defer cancel()
	var got answer
	r, err := http.NewRequestWithContext(ctx, c.method, "http://"+srv.addr+c.target, strings.NewReader(c.body))
	if err != nil {
		return got, err
	}
	r.Host = c.host // empty: the address
	r.GetBody = nil // only a case may send a request twice
	for _, l := range c.lines() {
		r.Header.Add(l.name, l.value)
	}
	resp, err := srv.client.Do(r)
	if err != nil {
		return got, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	got.status, got.fields, got.body = resp.StatusCode, linesOf(resp.Header), string(body)
	got.trailers = linesOf(resp.Trailer)
	return got, err
}

// linesOf returns the lines of a header map, sorted by name; the lines of one name are in
// the order in which they came.
func linesOf(h http.Header) []line {
	var lines []line
	for name, values := range h {
		for _, value := range values {
			lines = append(lines, line{name, value})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return strings.Compare(a.name, b.name) })
	return lines
}
