package wire

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// pairs is how many requests of each kind are timed.
const pairs = 600

// unequal is how far from one half the share of pairs may be in which one kind took
// longer than the other: five standard deviations. Comparing the two requests of a pair,
// which follow each other in random order, keeps a busy machine from tilting the share.
const unequal = 0.1

// TestKeysOfOthersLookUnused times requests with keys that another tenant has used,
// completed or running, against requests with unused keys. The responses are the same,
// and neither kind takes longer. A scope function that looks the keys of all tenants up
// makes the test fail.
func TestKeysOfOthersLookUnused(t *testing.T) { //nolint:paralleltest // it measures time
	var mu sync.Mutex
	used := map[string]bool{}
	careful := func(r *http.Request) (string, error) { return r.Header.Get("X-Test-Tenant"), nil }
	leaking := func(r *http.Request) (string, error) {
		mu.Lock()
		known := used[r.Header.Get("Idempotency-Key")]
		used[r.Header.Get("Idempotency-Key")] = true
		mu.Unlock()
		if known {
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the leak: it loads what the key stands for
		}
		return careful(r)
	}
	for _, state := range []string{"completed", "running"} {
		t.Run(state, func(t *testing.T) { //nolint:paralleltest // likewise
			if share := shareOfSlower(t, careful, state); share < 0.5-unequal || share > 0.5+unequal {
				t.Errorf("a key of another tenant took longer in %.3f of the pairs, want %.1f to %.1f", share, 0.5-unequal, 0.5+unequal)
			}
		})
	}
	t.Run("leak", func(t *testing.T) { //nolint:paralleltest // likewise
		if share := shareOfSlower(t, leaking, "completed"); share <= 0.5+unequal {
			t.Errorf("the scope function that leaks took longer in %.3f of the pairs: the test would miss it", share)
		}
	})
}

// shareOfSlower returns in which share of the pairs the key that the victim has used took
// longer than the unused key.
func shareOfSlower(t *testing.T, scope reprisehttp.Scope, state string) float64 {
	t.Helper()
	running := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Hold") != "" {
			<-running
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "created")
	})
	client, url := guarded(t, handler, scope)

	var victims sync.WaitGroup
	defer func() { close(running); victims.Wait() }()
	const held = 40 // keys that are running at a time, each of which is asked for again and again
	theirs := func(i int) string { return fmt.Sprintf("key-of-the-victim-%08d", i) }
	for i := range pairs {
		victim := timedRequest(t, url, "victim", theirs(i))
		switch {
		case state == "completed":
			answer(t, client, victim)
		case i < held:
			victim.Header.Set("X-Hold", "1")
			victims.Go(func() {
				if res, err := client.Do(victim); err == nil {
					_ = res.Body.Close()
				}
			})
		}
	}

	timed := func(i int, key string) time.Duration {
		// Every attacker has its own key space, so that no request is a retry.
		r := timedRequest(t, url, fmt.Sprintf("attacker-%06d", i), key)
		began := time.Now()
		got := answer(t, client, r)
		took := time.Since(began)
		if want := "201 created"; got != want {
			t.Fatalf("answered %q, want %q", got, want)
		}
		return took
	}
	slower, differences := 0, make([]time.Duration, 0, pairs)
	for i := range pairs {
		known, fresh := theirs(i), fmt.Sprintf("key-of-nobody-yet-%08d", i)
		if state == "running" {
			known = theirs(i % held)
		}
		var a, b time.Duration
		if rand.IntN(2) == 0 {
			a = timed(i, known)
			b = timed(i, fresh)
		} else {
			b = timed(i, fresh)
			a = timed(i, known)
		}
		if a > b {
			slower++
		}
		differences = append(differences, a-b)
	}
	slices.SortFunc(differences, cmp.Compare[time.Duration])
	share := float64(slower) / pairs
	t.Logf("%s: slower in %.3f of %d pairs; difference: median %v, quartiles %v and %v",
		state, share, pairs, differences[pairs/2], differences[pairs/4], differences[3*pairs/4])
	return share
}

// guarded serves a handler behind the middleware of net/http over a store in memory.
func guarded(t *testing.T, handler http.Handler, scope reprisehttp.Scope) (*http.Client, string) {
	t.Helper()
	guard := guardOver(t, memstore.New(), protocol.Config{})
	server := httptest.NewServer(reprisehttp.Middleware(guard, scope)(handler))
	t.Cleanup(server.Close)
	return server.Client(), server.URL + "/orders"
}

// guardOver returns a guard over a store.
func guardOver(t *testing.T, store store.Store, policy protocol.Config) *protocol.Guard {
	t.Helper()
	engine, err := reprise.New(store, reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	guard, err := protocol.Over(engine, policy)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func timedRequest(t *testing.T, url, tenant, key string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"amount":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Test-Tenant", tenant)
	r.Header.Set("Idempotency-Key", key)
	return r
}

// answer returns everything of a response but its date.
func answer(t *testing.T, client *http.Client, r *http.Request) string {
	t.Helper()
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name := range res.Header {
		if !slices.Contains([]string{"Date", "Content-Length", "Content-Type"}, name) {
			t.Fatalf("the answer has %s: %q", name, res.Header[name])
		}
	}
	return fmt.Sprintf("%d %s", res.StatusCode, body)
}
