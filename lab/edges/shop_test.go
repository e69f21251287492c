package edges_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// shop takes orders, and knows how often it did. Its effects are outside of the store.
type shop struct {
	mu      sync.Mutex
	runs    map[string]int
	answers map[string][]byte // to the first run
	refused map[string]bool   // orders whose first run failed before it did anything
}

func newShop() *shop {
	return &shop{runs: make(map[string]int), answers: make(map[string][]byte), refused: make(map[string]bool)}
}

// order is a client's request.
type order struct {
	Op      string `json:"op"`
	Padding string `json:"padding"`
}

// receipt is the response. Its token differs in every run.
type receipt struct {
	Op      string `json:"op"`
	Run     int    `json:"run"`
	Token   string `json:"token"`
	Padding string `json:"padding"`
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Op == "" {
		http.Error(w, "no order", http.StatusBadRequest)
		return
	}
	pause(mathrand.N(3 * time.Millisecond))
	s.mu.Lock()
	if mathrand.IntN(50) == 0 && !s.refused[o.Op] {
		s.refused[o.Op] = true
		s.mu.Unlock()
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	s.runs[o.Op]++
	run := s.runs[o.Op]
	answer, _ := json.Marshal(receipt{Op: o.Op, Run: run, Token: rand.Text(), Padding: o.Padding})
	if run == 1 {
		s.answers[o.Op] = answer
	}
	s.mu.Unlock()
	if mathrand.IntN(40) == 0 {
		pause(30 * time.Millisecond) // a duplicate finds it in progress
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(answer)
}

func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// count returns how many orders ran, and how many of them more than once.
func (s *shop) count() (orders, twice int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.runs {
		if n > 1 {
			twice++
		}
	}
	return len(s.runs), twice
}

// isFirst reports whether answer is that of the first run.
func (s *shop) isFirst(op string, answer []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Equal(s.answers[op], answer)
}

// stores opens the store of one process, as often as there are processes.
type stores func(testing.TB) func() store.Store

func memory(testing.TB) func() store.Store {
	one := memstore.New()
	return func() store.Store { return one }
}

func redis(tb testing.TB) func() store.Store {
	server := servers.Redis.Shared(tb)
	prefix := labtest.RedisPrefix()
	return func() store.Store {
		return labtest.RedisStore(tb, labtest.RedisClient(tb, server.Addr()), repriseredis.Config{Prefix: prefix})
	}
}

// serve serves the shop behind Reprise, on two listeners with an engine each over one
// store. A duplicate waits at the first, and is refused at the second.
func (s *shop) serve(tb testing.TB, open stores) []*url.URL {
	tb.Helper()
	store := open(tb)
	var addresses []*url.URL
	for _, wait := range []time.Duration{200 * time.Millisecond, 0} {
		guard, err := protocol.New(store(), protocol.Config{Engine: reprise.Config{Log: slog.New(slog.DiscardHandler)}, Required: true, Wait: wait})
		if err != nil {
			tb.Fatal(err)
		}
		server := httptest.NewServer(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(s))
		tb.Cleanup(func() {
			server.Close()
			if err := guard.Close(context.WithoutCancel(tb.Context())); err != nil {
				tb.Error(err)
			}
		})
		address, err := url.Parse(server.URL)
		if err != nil {
			tb.Fatal(err)
		}
		addresses = append(addresses, address)
	}
	return addresses
}

func orderOf(i int) order {
	o := order{Op: fmt.Sprintf("order-%05d", i)}
	if i%4 == 0 {
		o.Padding = string(bytes.Repeat([]byte("x"), 5000)) // beyond the buffers of net/http
	}
	return o
}
