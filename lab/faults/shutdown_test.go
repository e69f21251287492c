package faults_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/servers"
)

// A server that is stopped under load completes the requests that it began: every client
// gets the response of a handler that ran, without a retry.
func TestShutdownUnderLoadCompletesRunningRequests(t *testing.T) {
	t.Parallel()
	effects := effectsServer(t)
	redis := servers.Redis.Shared(t)
	for _, store := range []string{"redis", "postgres", "postgres-tx"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			var ran, answered, refused, ended int
			for range 3 {
				db := at(effects.URL(), database(t, effects))
				w := newWorld(t, setting{name: "shutdown-" + store, nodes: 1, db: db, store: []string{"-store", store, "-redis-url", redis.URL()}})
				got := w.shutDown(t)
				pool, err := pgxpool.New(t.Context(), db)
				if err != nil {
					t.Fatal(err)
				}
				rows(t, pool, "SELECT op FROM reprise_effects", func(scan func(...any) error) error {
					var op string
					err := scan(&op)
					ran++
					if !got[op] {
						t.Errorf("%s ran, and its client has no answer", op)
					}
					return err
				})
				pool.Close()
				for _, ok := range got {
					if ok {
						answered++
					} else {
						refused++
					}
				}
				ended++
			}
			t.Logf("%d shutdowns: %d requests ran, %d were answered, %d did not run", ended, ran, answered, refused)
			if ran < 10 || ran != answered {
				t.Error("want each that ran answered, and enough of them")
			}
		})
	}
}

// shutDown ends the server under a load of clients that do not retry, and returns which
// operations were answered.
func (w *world) shutDown(t *testing.T) map[string]bool {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	var mu sync.Mutex
	answered := make(map[string]bool)
	var next, done atomic.Int64
	run := repriseclient.NewKey()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for ctx.Err() == nil {
				op := fmt.Sprintf("op-%s-%d", run, next.Add(1))
				ok := once(client, w.nodes[0].link.Addr(), op)
				mu.Lock()
				answered[op] = ok
				mu.Unlock()
				done.Add(1)
				if !ok {
					return // the server is gone
				}
			}
		})
	}
	for deadline := time.Now().Add(patience); done.Load() < 20 && time.Now().Before(deadline); {
		sleepFor(time.Millisecond)
	}
	if code := w.nodes[0].terminate(); code != 0 {
		t.Errorf("ended with %d\n%s", code, w.nodes[0].lastWords())
	}
	stop()
	clients.Wait()
	return answered
}

// once sends one request, and reports whether it was answered by its handler.
func once(client *http.Client, addr, op string) bool {
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/t/"+op, strings.NewReader(op)) //nolint:noctx // the client has a timeout
	if err != nil {
		return false
	}
	req.Header.Set("Idempotency-Key", repriseclient.NewKey())
	req.Header.Set(adaptertest.ProgramHeader, `{"effect":true,"echo":true,"status":201,"delay_ms":30}`)
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusCreated
}
