package program

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
)

// killable are stores whose records outlive a kill of their server.
var killable = map[string]func(testing.TB) (args, env []string, kill, restart func(testing.TB)){
	"redis": func(tb testing.TB) ([]string, []string, func(testing.TB), func(testing.TB)) {
		tb.Helper()
		server := servers.Redis.Start(tb, "appendonly=yes", "appendfsync=always")
		return []string{"--store", "redis://" + server.Addr()}, nil, server.Kill, server.Restart
	},
	"postgres": func(tb testing.TB) ([]string, []string, func(testing.TB), func(testing.TB)) {
		tb.Helper()
		server := servers.StartPostgres(tb, "fsync=on")
		f := postgresFixture(tb, labtest.SetupPostgres(tb, server), server.URL())
		return []string{"--store", server.URL()}, f.env, server.Kill, server.Restart
	},
}

// TestProxyRunsAKeyAtMostOnceThroughKills kills the proxy, the upstream or the store
// while clients send and repeat requests. With REPRISE_SOAK there are 300 kills on each
// pair.
func TestProxyRunsAKeyAtMostOnceThroughKills(t *testing.T) {
	t.Parallel()
	kills := 6
	if labtest.Soak(t) > 0 {
		kills = 300
	}
	for store, on := range killable {
		for language := range languages {
			t.Run(store+"/"+language, func(t *testing.T) {
				t.Parallel()
				if store == "postgres" && language != "go" && labtest.Soak(t) == 0 {
					labtest.Breadth(t, "kills of the proxy with PostgreSQL and each language")
				}
				args, env, kill, restart := on(t)
				s := startService(t, language)
				args = append(args, "--listen", servers.FreeAddr(t), "--upstream", "http://"+s.address, "--scope-header", "Authorization")
				proxy := forward(t, env, args...)
				c := startClients(t, proxy.URL)
				for i := range kills {
					before := c.count()
					await(t, "requests between two kills", func() bool { return c.count() > before+10 })
					settle(time.Duration(rand.N(20)) * time.Millisecond)
					switch i % 3 {
					case 0:
						proxy.signal(syscall.SIGKILL)
						<-proxy.ended
						proxy = forward(t, env, args...)
					case 1:
						s.kill()
						s.start(t)
					default:
						kill(t)
						restart(t)
					}
				}
				c.stop()
				c.repeat(t)
				runs, most := s.runs(t), 0
				for key, n := range runs {
					if most = max(most, n); n > 1 {
						t.Errorf("%s ran %d times", key, n)
					}
				}
				t.Logf("%d kills, %d requests, %d keys with an effect, at most %d for a key; %d keys have a response, %d an unknown outcome",
					kills, c.count(), len(runs), most, c.answered, c.unknown)
				if c.answered == 0 {
					t.Error("no request got a response")
				}
			})
		}
	}
}

// settle waits so that kills hit requests in every part of their way.
func settle(d time.Duration) { <-time.After(d) }

// clients send keyed requests until they are stopped.
type clients struct {
	url     string
	running sync.WaitGroup
	stopped chan struct{}

	mu                sync.Mutex
	sent              int
	bodies            map[string][]byte // of the first response with 201 to each key; nil: none yet
	recorded          map[string]bool   // that response had no mark of an unrecorded one
	diverged          []string
	answered, unknown int // after repeat
}

func startClients(tb testing.TB, url string) *clients {
	tb.Helper()
	c := &clients{url: url, stopped: make(chan struct{}), bodies: map[string][]byte{}, recorded: map[string]bool{}}
	for i := range 4 {
		c.running.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
			defer client.CloseIdleConnections()
			for n := 0; ; n++ {
				key := fmt.Sprintf("client-%d-order-%d", i, n)
				for range 3 {
					select {
					case <-c.stopped:
						return
					default:
					}
					c.send(tb, client, key)
				}
			}
		})
	}
	return c
}

func (c *clients) send(tb testing.TB, client *http.Client, key string) *result {
	tb.Helper()
	got := post(tb.Context(), client, c.url+"/orders", key, "pay")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	known := c.bodies[key]
	if got.err == nil && got.status == http.StatusCreated {
		if known != nil && !bytes.Equal(known, got.body) {
			c.diverged = append(c.diverged, key)
		}
		known = got.body
		c.recorded[key] = c.recorded[key] || got.header.Get("Idempotency-Status") == ""
	}
	c.bodies[key] = known
	return got
}

func (c *clients) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

func (c *clients) stop() {
	close(c.stopped)
	c.running.Wait()
}

// repeat sends a request with each key again: the response is that of before. One that
// came while the store was down, and says so, may have been lost with the proxy.
func (c *clients) repeat(tb testing.TB) {
	tb.Helper()
	client := &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	for key, body := range c.bodies {
		recorded := c.recorded[key]
		got := c.send(tb, client, key)
		switch {
		case recorded && !(got.status == http.StatusCreated && got.replayed() && bytes.Equal(got.body, body)):
			tb.Errorf("%s had a response, and got %+v", key, got)
		case got.status == http.StatusCreated:
			c.answered++
		case got.unknown():
			c.unknown++
		}
	}
	for _, key := range c.diverged {
		tb.Errorf("%s got two different responses", key)
	}
}
