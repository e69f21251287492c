package edges_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// chaos stands between the client and the servers, and harms four requests of ten.
type chaos struct {
	*httptest.Server

	to      []*url.URL
	forward *http.Transport
	late    sync.WaitGroup // requests that outlive their own

	mu     sync.Mutex
	counts map[string]int
	conns  map[net.Conn]struct{}
}

// The faults of a hundred requests.
var faults = []struct {
	name    string
	percent int
}{
	{"dropped before", 8},
	{"dropped after", 8},
	{"cut", 8},
	{"delayed", 2},
	{"duplicated at once", 4},
	{"duplicated late", 4},
	{"refused by the gateway", 4},
	{"lost by the gateway", 3},
	{"connection cut", 1},
}

// attemptTimeout is how long a client waits for one attempt. A busy machine must not need
// it, and so only a few requests are delayed beyond it.
const (
	attemptTimeout = 2 * time.Second
	mostDelayed    = 3
)

func startChaos(tb testing.TB, to []*url.URL, http2 bool) *chaos {
	tb.Helper()
	p := &chaos{
		to: to, forward: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true},
		counts: make(map[string]int), conns: make(map[net.Conn]struct{}),
	}
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ConnState = p.track
	p.Config.ErrorLog = silent // it is about connections that were cut
	p.EnableHTTP2 = http2
	if http2 {
		p.StartTLS()
	} else {
		p.Start()
	}
	tb.Cleanup(func() {
		p.Close()
		p.late.Wait()
		p.forward.CloseIdleConnections()
	})
	return p
}

func (p *chaos) track(c net.Conn, s http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch s {
	case http.StateNew:
		p.conns[c] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, c)
	default:
	}
}

// cutOne closes a connection with all that is on it.
func (p *chaos) cutOne() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
		return
	}
}

func (p *chaos) pick() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts["requests"]++
	n := mathrand.IntN(100)
	for _, f := range faults {
		if n -= f.percent; n < 0 {
			if f.name == "delayed" && p.counts[f.name] == mostDelayed {
				return ""
			}
			p.counts[f.name]++
			return f.name
		}
	}
	return ""
}

// String lists the proxy's actions.
func (p *chaos) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p.counts)) {
		list = append(list, fmt.Sprintf("%d %s", p.counts[name], name))
	}
	return strings.Join(list, ", ")
}

// relayed is a response that was read.
type relayed struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (p *chaos) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	send := func() relayed { return p.send(r, body) }
	later := func(wait time.Duration) {
		p.late.Go(func() {
			pause(wait)
			send()
		})
	}
	switch p.pick() {
	case "dropped before":
		panic(http.ErrAbortHandler)
	case "dropped after":
		send()
		panic(http.ErrAbortHandler)
	case "cut":
		a := send()
		a.write(w, len(a.body)/2)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "delayed":
		<-r.Context().Done() // the client gave up
		later(0)
		return
	case "duplicated at once":
		later(0)
	case "duplicated late":
		later(mathrand.N(50 * time.Millisecond))
	case "refused by the gateway":
		w.Header().Set("Retry-After", "0")
		w.WriteHeader([]int{429, 502, 503, 504}[mathrand.IntN(4)])
		return
	case "lost by the gateway":
		send()
		w.WriteHeader(http.StatusGatewayTimeout)
		return
	case "connection cut":
		p.cutOne()
	}
	a := send()
	a.write(w, len(a.body))
}

// send sends the request to one of the servers, even if the client is gone.
func (p *chaos) send(r *http.Request, body []byte) relayed {
	to := r.Clone(context.WithoutCancel(r.Context()))
	server := p.to[mathrand.IntN(len(p.to))]
	to.URL.Scheme, to.URL.Host, to.RequestURI = server.Scheme, server.Host, ""
	to.Body, to.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp, err := p.forward.RoundTrip(to)
	if err != nil {
		return relayed{err: err}
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	return relayed{status: resp.StatusCode, header: resp.Header, body: read, err: err}
}

// write writes the first bytes of a response, which says how many it has.
func (a *relayed) write(w http.ResponseWriter, bytes int) {
	if a.err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body[:bytes])
}

// silent discards a server's log.
var silent = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
