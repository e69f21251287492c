package load

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/protocol"
)

// A quantile is never below the true one, and at most a 64th above.
func TestQuantilesAreCloseToTheTruth(t *testing.T) {
	t.Parallel()
	var h Histogram
	if got := h.Quantile(.99); got != 0 {
		t.Errorf("the quantile of nothing is %v", got)
	}
	const n = 100_000
	for i := 1; i <= n; i++ {
		h.Record(time.Duration(i) * time.Microsecond)
	}
	h.Record(-time.Second)
	for _, share := range []float64{.001, .5, .9, .99, .999, 1} {
		want := time.Duration(share*n) * time.Microsecond
		if got := h.Quantile(share); got < want-2*time.Microsecond || float64(got) > float64(want+2*time.Microsecond)*(1+1./64) {
			t.Errorf("quantile %v is %v, want %v", share, got, want)
		}
	}
	var sum Histogram
	sum.Add(&h)
	sum.Add(&h)
	if got := sum.Quantile(.5); got != h.Quantile(.5) || sum.total != 2*h.total {
		t.Errorf("twice the same has %d and the median %v", sum.total, got)
	}
	for _, v := range []uint64{0, 1, 63, 64, 127, 128, 129, 1 << 40, 1<<62 - 1} {
		if end := uint64(endOf(bucketOf(v))); end < v || end > v+v/64+1 {
			t.Errorf("%d is in a bucket that ends at %d", v, end)
		}
	}
}

// server answers as a benchmark server does, and keeps count.
type server struct {
	mu   sync.Mutex
	keys map[string]int
	kind map[string]int
	wait time.Duration // of the fifth request
	bad  bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	s.keys[key]++
	s.kind[r.Header.Get(KindHeader)]++
	if len(s.keys) == 5 && s.wait > 0 {
		<-time.After(s.wait)
		s.wait = 0
	}
	if s.keys[key] > 1 && key != "" && !s.bad {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(adaptertest.DefaultBody))
}

func serveTest(t *testing.T, s *server) (addr string) {
	t.Helper()
	s.keys, s.kind = map[string]int{}, map[string]int{}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return h.Listener.Addr().String()
}

func begin() error { return nil }

// A load of new keys uses each once, a load of replays one for each connection, and a
// load without keys none.
func TestKindsOfLoad(t *testing.T) {
	t.Parallel()
	const connections, requests = 3, 60
	for kind, want := range map[Kind]int{New: requests, Replay: connections, NoKey: 1} {
		s := new(server)
		r, err := Run(t.Context(), Order{Addr: serveTest(t, s), Connections: connections, Kind: kind, Count: requests, Marked: true}, begin)
		if err != nil || r.Failure != "" || r.Requests != requests {
			t.Fatalf("%s: %+v, %v", kind, r, err)
		}
		if len(s.keys) != want || kind == NoKey && s.keys[""] != requests {
			t.Errorf("%s: %d keys, want %d", kind, len(s.keys), want)
		}
		if kind == Replay && (s.kind["new"] != connections || s.kind["replay"] != requests) {
			t.Errorf("the server was told of %v", s.kind)
		}
		for key := range s.keys {
			if kind != NoKey && (len(key) != keyLength || strings.Count(key, "-") != 4) {
				t.Errorf("the key %q is not a UUID", key)
			}
		}
	}
}

// A response that is not the one of a benchmark server ends the measurement with an error
// that shows it.
func TestWrongResponsesEndALoad(t *testing.T) {
	t.Parallel()
	s := &server{bad: true}
	r, err := Run(t.Context(), Order{Addr: serveTest(t, s), Connections: 2, Kind: Replay, Count: 10, Marked: true}, begin)
	if err != nil || !strings.Contains(r.Failure, "201 Created") {
		t.Errorf("replays without a mark: %+v, %v", r, err)
	}
	s = &server{bad: true}
	r, err = Run(t.Context(), Order{Addr: serveTest(t, s), Connections: 2, Kind: Replay, Count: 10, Marked: true, CountWrong: true}, begin)
	if err != nil || r.Failure != "" || r.Wrong["201"] != 10 || r.Requests != 0 {
		t.Errorf("wrong answers that are counted: %+v, %v", r, err)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	r, err = Run(t.Context(), Order{Addr: gone.Listener.Addr().String(), Connections: 2, Kind: New, Duration: time.Second}, begin)
	if err != nil || !strings.Contains(r.Failure, "404") {
		t.Errorf("an answer of 404: %+v, %v", r, err)
	}
}

// Wrong responses are counted by their status, and a problem's by its code as well.
func TestWrongResponsesAreCountedByCode(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1)%3 == 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		p := protocol.CodeStoreUnavailable.Problem()
		body, _ := json.Marshal(map[string]any{"type": p.Type, "code": p.Code, "retryable": p.Retryable})
		w.WriteHeader(p.Status)
		_, _ = w.Write(body)
	}))
	t.Cleanup(busy.Close)
	r, err := Run(t.Context(), Order{Addr: busy.Listener.Addr().String(), Connections: 2, Kind: New, Count: 9, CountWrong: true}, begin)
	if want := map[string]int64{"404": 3, "503 store-unavailable": 6}; err != nil || !maps.Equal(r.Wrong, want) {
		t.Errorf("%v, %v, want %v", r.Wrong, err, want)
	}
}

// At a fixed rate a stall counts for every request that was due while it lasted.
func TestAFixedRateCountsTheWaitOfEveryone(t *testing.T) {
	t.Parallel()
	const stall = 200 * time.Millisecond
	s := &server{wait: stall}
	r, err := Run(t.Context(), Order{Addr: serveTest(t, s), Connections: 1, Kind: New, Duration: 400 * time.Millisecond, Rate: 200}, begin)
	if err != nil || r.Failure != "" {
		t.Fatal(err, r)
	}
	if r.Requests < 60 || r.Requests > 81 {
		t.Errorf("%d requests in 0.4 s at 200 a second", r.Requests)
	}
	if r.P90 < stall/4 || r.Max < stall {
		t.Errorf("a stall of %v for half of the time shows as p90 %v, max %v", stall, r.P90, r.Max)
	}
}

// A process carries out one order after the other.
func TestProcessProtocol(t *testing.T) {
	t.Parallel()
	p, err := Start(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	s := new(server)
	o := Order{Addr: serveTest(t, s), Connections: 2, Kind: New, Count: 20, Marked: true}
	for range 2 {
		begun := 0
		r, err := p.Measure(o, func() { begun++ })
		if err != nil || r.Requests != 20 || begun != 1 {
			t.Errorf("%+v, %v, begun %d times", r, err, begun)
		}
	}
	o.Addr = "127.0.0.1:1"
	if _, err := p.Measure(o, func() {}); err == nil {
		t.Error("a server that is not there was measured")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestMain(m *testing.M) {
	if !Main(context.Background()) {
		m.Run()
	}
}
