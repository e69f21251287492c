package faults_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// A server that has had many requests holds no more than one that has had some: a million
// in a soak, or as many as there is time for.
func TestManyRequestsLeakNoMemoryOrGoroutines(t *testing.T) {
	t.Parallel()
	soak, began := labtest.Soak(t), time.Now()
	for i, store := range []string{"memory", "redis", "postgres"} {
		t.Run(store, func(t *testing.T) {
			requests, until := int64(5_000), time.Now().Add(patience)
			if soak > 0 {
				requests, until = 1_000_000, began.Add(soak*time.Duration(i+1)/3)
			} else {
				t.Parallel()
			}
			s := manyServer(t, store)
			before, sent := s.send(requests/5, until), s.sent.Load()
			s.most = held{goroutines: before.goroutines + 5, heap: before.heap + 1<<20}
			after := s.send(requests, until)
			t.Logf("after %d requests: %v; after %d: %v; %d wrong answers", sent, before, s.sent.Load(), after, s.wrong.Load())
			if s.wrong.Load() > 0 || !after.within(s.most) {
				t.Error("want no wrong answer, and no more than before")
			}
		})
	}
}

// many is a server that gets many requests.
type many struct {
	*node
	t           *testing.T
	client      *http.Client
	run         string
	most        held // its bound when it is idle
	sent, wrong atomic.Int64
}

func manyServer(t *testing.T, store string) *many {
	t.Helper()
	args := []string{"-store", store, "-retention", "500ms", "-purge", "200ms", "-lease", lease.String(), "-required", "-max-records", "1000000", "-pool", "8"}
	switch store {
	case "redis":
		args = append(args, "-redis-url", servers.Redis.Shared(t).URL())
	case "postgres":
		server := effectsServer(t)
		args = append(args, "-postgres-url", at(server.URL(), database(t, server)))
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: patience}
	t.Cleanup(client.CloseIdleConnections)
	return &many{node: startNode(t, t.TempDir(), "many-"+store, nil, args), t: t, client: client, run: repriseclient.NewKey(), most: held{goroutines: 30, heap: math.MaxInt}}
}

// held is the resources that a server holds; heap is in bytes.
type held struct{ goroutines, heap int }

func (h held) within(most held) bool {
	return h.goroutines <= most.goroutines && h.heap <= most.heap
}

func (h held) String() string { return fmt.Sprintf("%d goroutines, %d KiB", h.goroutines, h.heap>>10) }

// send sends requests until there were so many, every second one with the key of the one
// before it, and returns the resources that the server holds after the connections were
// closed and its heap was collected.
func (s *many) send(requests int64, until time.Time) held {
	s.t.Helper()
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for time.Now().Before(until) {
				i := s.sent.Add(1)
				if i > requests {
					s.sent.Add(-1)
					return
				}
				if !s.keyed(i / 2) {
					s.wrong.Add(1)
				}
			}
		})
	}
	clients.Wait()
	s.client.CloseIdleConnections()
	for deadline := time.Now().Add(10 * time.Second); ; sleepFor(100 * time.Millisecond) {
		got := s.report()
		if time.Now().After(deadline) || got.within(s.most) {
			return got
		}
	}
}

// report asks the server for its resources.
func (s *many) report() (got held) {
	s.t.Helper()
	s.tell("report", "now", 0)
	select {
	case line := <-s.at:
		if _, err := fmt.Sscanf(line, "report %d %d", &got.goroutines, &got.heap); err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
	case <-time.After(patience):
		s.t.Fatal("no report")
	}
	return got
}

// keyed sends a request of the benchmark path, and reports whether the response was not a
// replay.
func (s *many) keyed(n int64) bool {
	req, err := http.NewRequest(http.MethodPost, "http://"+s.link.Addr()+"/t/many", http.NoBody) //nolint:noctx // the client has a timeout
	if err != nil {
		return false
	}
	req.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%016d", s.run, n))
	resp, err := s.client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && (resp.StatusCode == http.StatusCreated || resp.StatusCode == http.StatusConflict)
}
