// Package stack sends requests to services with real middlewares: ordinary stacks, which
// have to run once ([RunOnce]), handlers that outlive a timeout outside ([RunLate]), the
// adapter for net/http in other frameworks ([RunUse]) and a reverse proxy in them
// ([RunProxy]).
package stack

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// patience is how long a response may take.
const patience = 10 * time.Second

// answer is a client's response.
type answer struct {
	err      error // the response did not come, or not to its end
	status   int
	header   http.Header
	body     string // as it was sent
	plain    string // decoded
	replayed bool
}

// client sends requests to one server.
type client struct {
	t    *testing.T
	addr string
}

var transport = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       patience,
}

// send sends a request, with a key unless it is empty.
func (c *client) send(encoding, key string) answer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, "http://"+c.addr+"/", strings.NewReader("body"))
	if err != nil {
		c.t.Fatal(err)
	}
	r.GetBody = nil // no silent repetition
	r.Header.Set("Origin", "https://shop.example")
	if encoding != "" {
		r.Header.Set("Accept-Encoding", encoding)
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := transport.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	a := answer{
		err: err, status: res.StatusCode, header: res.Header, body: string(body), plain: string(body),
		replayed: res.Header.Get(marker) == "true",
	}
	if length := res.Header.Get("Content-Length"); err == nil && length != "" && length != strconv.Itoa(len(body)) {
		c.t.Errorf("a body of %d bytes is declared as %s", len(body), length)
	}
	if res.Header.Get("Content-Encoding") == "gzip" && len(body) > 0 {
		a.plain = unzip(body)
	}
	return a
}

// unzip decodes a body, or says why it cannot.
func unzip(body []byte) string {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return fmt.Sprintf("not compressed (%v): %.40q", err, body)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return fmt.Sprintf("compressed and broken off (%v): %.40q", err, plain)
	}
	return string(plain)
}

// own are the fields whose values belong to one response, where both have them.
var own = []string{"Date", "X-Request-Id", "Traceparent"}

// marker is the field that marks a replay.
var marker = new(protocol.Config).ControlFields().Replayed

// unlike are the fields about how a response was sent, which differ in a replay.
var unlike = []string{"Content-Length", marker}

// differences returns the differences of two responses, by field.
func differences(got, want answer) map[string]string {
	found := map[string]string{}
	if (got.err != nil) != (want.err != nil) {
		found["status"] = fmt.Sprintf("error %v, want %v", got.err, want.err)
		return found
	}
	if got.status != want.status {
		found["status"] = fmt.Sprintf("%d %.60q, want %d %.60q", got.status, got.plain, want.status, want.plain)
	}
	if got.plain != want.plain {
		found["body"] = fmt.Sprintf("%d bytes %.60q, want %d bytes %.60q", len(got.plain), got.plain, len(want.plain), want.plain)
	}
	names := slices.Concat(slices.Collect(maps.Keys(got.header)), slices.Collect(maps.Keys(want.header)))
	for _, name := range names {
		if slices.Contains(unlike, name) {
			continue
		}
		g, w := got.header[name], want.header[name]
		if slices.Contains(own, name) && len(g) == len(w) {
			continue
		}
		if !slices.Equal(g, w) {
			found[name] = fmt.Sprintf("%q, want %q", g, w)
		}
	}
	return found
}

// Guard returns a guard over a memory store, with the default policy, until the test
// ends.
func Guard(t *testing.T) *protocol.Guard {
	t.Helper()
	return guardOver(t, memstore.New(), reprise.Recoverable)
}

func guardOver(t *testing.T, st store.Store, preset reprise.Preset) *protocol.Guard {
	t.Helper()
	engine, err := reprise.New(st, reprise.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	guard, err := protocol.Over(engine, protocol.Config{Preset: preset})
	if err != nil {
		t.Fatal(err)
	}
	return guard
}
