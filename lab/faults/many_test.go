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
			s.send(requests/5, until)
			before, sent := s.idle(held{30, math.MaxInt}), s.sent.Load()
			s.send(requests, until)
			after := s.idle(held{before.goroutines + 5, before.heap + 1<<20})
			t.Logf("after %d requests: %+v; after %d: %+v; %d wrong answers", sent, before, s.sent.Load(), after, s.wrong.Load())
			if s.wrong.Load() > 0 {
				t.Error("want no wrong answer")
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
	return &many{node: startNode(t, t.TempDir(), "many-"+store, nil, args), t: t, client: client, run: repriseclient.NewKey()}
}

// held is the resources that a server holds; heap is in bytes.
type held struct{ goroutines, heap int }

// send sends requests until there were so many, every second one with the key of the one
// before it.
func (s *many) send(requests int64, until time.Time) {
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for time.Now().Before(until) && s.sent.Load() < requests {
				if !s.keyed(s.sent.Add(1) / 2) {
					s.wrong.Add(1)
				}
			}
		})
	}
	clients.Wait()
	s.client.CloseIdleConnections()
}

// idle returns the resources that the server holds after its heap was collected, as soon
// as they are no more than most, and fails the test if they stay above.
func (s *many) idle(most held) (got held) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; sleepFor(100 * time.Millisecond) {
		s.tell("report", "now", 0)
		select {
		case line := <-s.at:
			if _, err := fmt.Sscanf(line, "report %d %d", &got.goroutines, &got.heap); err != nil {
				s.t.Fatalf("%s: %v", line, err)
			}
		case <-time.After(patience):
			s.t.Fatal("no report")
		}
		switch {
		case got.goroutines <= most.goroutines && got.heap <= most.heap:
			return got
		case time.Now().After(deadline):
			s.t.Errorf("the server holds %+v, want at most %+v", got, most)
			return got
		}
	}
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
