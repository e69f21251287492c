package faults_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// load calls operations, again and again, until it is stopped.
type load struct {
	client *http.Client
	nodes  []*node
	run    string // in each key, so that runs over one server do not meet

	requests, attempts, replays atomic.Int64
	next                        atomic.Int64 // operations that began

	mu    sync.Mutex
	calls map[string][]call
}

// spread sends each attempt to one of the servers.
type spread struct {
	base  *http.Transport
	nodes []*node
	turn  atomic.Int64
}

func (s *spread) RoundTrip(req *http.Request) (*http.Response, error) {
	n := s.nodes[int(s.turn.Add(1))%len(s.nodes)]
	req = req.Clone(req.Context())
	req.URL.Host = n.link.Addr()
	return s.base.RoundTrip(req)
}

func newLoad(tb testing.TB, run string, nodes []*node) *load {
	tb.Helper()
	base := &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}
	tb.Cleanup(base.CloseIdleConnections)
	transport, err := repriseclient.NewTransport(&spread{base: base, nodes: nodes}, repriseclient.Config{
		Delay: 5 * time.Millisecond, MaxDelay: 400 * time.Millisecond, AttemptTimeout: lease,
		MaxAttempts: 10_000, MaxElapsed: patience, MaxRetryAfter: patience, RetryServerErrors: true,
		Budget: repriseclient.Budget{Off: true},
	})
	labtest.Must(tb, err)
	return &load{client: &http.Client{Transport: transport}, nodes: nodes, run: run, calls: make(map[string][]call)}
}

// work runs operations, some at once, until ctx ends, and each of their calls to its end.
func (l *load) work(ctx context.Context) {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				l.operate() //nolint:contextcheck // a call that began goes on when the load is stopped
				sleep(ctx, rand.N(40*time.Millisecond))
			}
		})
	}
	wg.Wait()
}

// workers is how many operations run at once.
const workers = 8

// operate calls a new operation, some of them twice at once, and repeats an earlier one.
func (l *load) operate() {
	n := l.next.Add(1)
	var twice sync.WaitGroup
	if rand.IntN(3) == 0 {
		twice.Go(func() { l.call(n, call{}) })
	}
	l.call(n, call{})
	twice.Wait()
	if rand.IntN(3) == 0 {
		l.call(max(1, n-rand.Int64N(50)), call{})
	}
	if rand.IntN(10) == 0 {
		l.call(n, call{other: true})
	}
}

func (l *load) name(n int64) string { return fmt.Sprintf("%s-%07d", l.run, n) }

// call calls an operation and keeps the result.
func (l *load) call(n int64, c call) {
	op := l.name(n)
	c.began = time.Now().UnixNano()
	l.ask(op, n, &c)
	c.ended = time.Now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[op] = append(l.calls[op], c)
}

// ask sends the requests of a call.
func (l *load) ask(op string, n int64, c *call) {
	ctx, cancel := context.WithTimeout(repriseclient.WithKey(context.Background(), "key-of-"+op), 2*patience)
	defer cancel()
	body := "order " + op
	if c.other {
		body = "another order"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://any/t/"+op, strings.NewReader(body))
	if err != nil {
		c.err = err
		return
	}
	req.Header.Set(adaptertest.ProgramHeader, fmt.Sprintf(`{"effect":true,"echo":true,"status":201,"delay_ms":%d}`, n%3*4))
	l.requests.Add(1)
	resp, err := l.client.Do(req)
	if err != nil {
		c.err = err
		return
	}
	defer resp.Body.Close()
	l.attempts.Add(int64(repriseclient.Attempts(resp)))
	if p, ok := repriseclient.ProblemOf(resp); ok {
		c.code = string(p.Code)
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		c.err = err
		return
	}
	whole := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", resp.Header.Get(adaptertest.ExecHeader), resp.Header.Get("Content-Type"), got))
	c.status, c.sum, c.replayed = resp.StatusCode, [16]byte(whole[:]), repriseclient.Replayed(resp)
	c.unrecorded = resp.Header.Get("Idempotency-Status") != ""
	var echo adaptertest.Echo
	if json.Unmarshal(got, &echo) == nil {
		c.fence = echo.Fence
	}
	if c.replayed {
		l.replays.Add(1)
	}
}

// audit calls every operation once more, when all faults are over.
func (l *load) audit() {
	last := l.next.Load()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n := next.Add(1); n <= last; n = next.Add(1) {
				l.call(n, call{audit: true})
			}
		})
	}
	wg.Wait()
}

// sleep pauses, or less if ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
