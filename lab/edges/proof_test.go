// Package client_test proves the client's end of the header with real servers: through a
// proxy that drops, cuts, delays and duplicates, no operation runs twice, and every call
// ends with the response of the first run.
package edges_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// proof is a number of calls through the proxy.
type proof struct {
	store stores
	http2 bool
	calls int

	// wrap, if set, stands between the transport and net/http.
	wrap func(http.RoundTripper) http.RoundTripper
}

// result is the result of the operations.
type result struct {
	orders, twice      int // that ran, and that ran more than once
	lost               int // calls that ended otherwise than with the first response
	attempts, replayed int
	firstLoss          string
	proxy              fmt.Stringer
	took               time.Duration
}

func (r result) String() string {
	return fmt.Sprintf("%d orders in %s and %d attempts, %d answers were replays; %d ran twice, %d calls lost (%s); the proxy: %s",
		r.orders, r.took.Round(time.Millisecond), r.attempts, r.replayed, r.twice, r.lost, r.firstLoss, r.proxy)
}

func (p proof) run(t *testing.T) result {
	t.Helper()
	s := newShop()
	between := startChaos(t, s.serve(t, p.store), p.http2)

	base := between.Client().Transport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 100
	t.Cleanup(base.CloseIdleConnections)
	var rt http.RoundTripper = base
	if p.wrap != nil {
		rt = p.wrap(base)
	}
	transport, err := repriseclient.NewTransport(rt, repriseclient.Config{
		Delay: 2 * time.Millisecond, MaxDelay: 200 * time.Millisecond, AttemptTimeout: attemptTimeout,
		MaxAttempts: 100, MaxElapsed: time.Minute, Budget: repriseclient.Budget{Off: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	res := result{proxy: between}
	var mu sync.Mutex
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(p.calls); i = next.Add(1) {
				o := orderOf(int(i))
				e, err := place(t.Context(), client, between.URL, o)
				mu.Lock()
				if err != nil || e.status != http.StatusCreated || !s.isFirst(o.Op, e.body) {
					res.lost++
					res.firstLoss = fmt.Sprintf("%s: %v, %.200s", o.Op, err, e.body)
				}
				res.attempts += e.attempts
				if e.replayed {
					res.replayed++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	between.late.Wait() // a duplicate that is late must not run either
	res.took = time.Since(began)
	res.orders, res.twice = s.count()
	return res
}

// end is how a call ended.
type end struct {
	status   int
	body     []byte
	attempts int
	replayed bool
}

// place places an order. Some have a body that cannot be rewound, and some a key of the
// business.
func place(ctx context.Context, client *http.Client, url string, o order) (end, error) {
	document, err := json.Marshal(o)
	if err != nil {
		return end{}, err
	}
	var body io.Reader = bytes.NewReader(document)
	if strings.HasSuffix(o.Op, "3") {
		body = io.NopCloser(body)
	}
	if strings.HasSuffix(o.Op, "5") {
		ctx = repriseclient.WithKey(ctx, o.Op)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", body)
	if err != nil {
		return end{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return end{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return end{resp.StatusCode, got, repriseclient.Attempts(resp), repriseclient.Replayed(resp)}, err
}

// calls is how many a proof makes: 10,000 in a soak.
func calls(t *testing.T) int {
	t.Helper()
	if labtest.Soak(t) > 0 {
		return 10_000
	}
	return 250
}

func TestNoOrderRunsTwiceAndNoneIsLost(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]proof{
		"store=memory/HTTP1.1": {store: memory},
		"store=memory/HTTP2":   {store: memory, http2: true},
		"store=redis/HTTP1.1":  {store: redis},
		"store=redis/HTTP2":    {store: redis, http2: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.calls = calls(t)
			r := p.run(t)
			t.Log(r)
			if r.orders != p.calls || r.twice != 0 || r.lost != 0 {
				t.Error("want every order once, and no call lost")
			}
			if r.attempts < p.calls*11/10 || r.replayed == 0 {
				t.Error("the proxy did little harm, so this shows nothing")
			}
		})
	}
}

// The proof notices the mistakes that would make it worthless.
func TestTheProofNoticesBrokenClients(t *testing.T) {
	t.Parallel()
	t.Run("a new key for each attempt", func(t *testing.T) {
		t.Parallel()
		r := proof{store: memory, calls: 100, wrap: func(base http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				req.Header.Set("Idempotency-Key", repriseclient.NewKey())
				return base.RoundTrip(req)
			})
		}}.run(t)
		t.Log(r)
		if r.twice == 0 {
			t.Error("no order ran twice")
		}
	})
	t.Run("a body that is not rewound", func(t *testing.T) {
		t.Parallel()
		var seen sync.Map
		r := proof{store: memory, calls: 100, wrap: func(base http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if _, again := seen.LoadOrStore(req.Header.Get("Idempotency-Key"), true); again {
					_ = req.Body.Close()
					req.Body, req.GetBody, req.ContentLength = http.NoBody, nil, 0
				}
				return base.RoundTrip(req)
			})
		}}.run(t)
		t.Log(r)
		if r.lost == 0 {
			t.Error("no call was lost")
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
