package program

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// killable are stores whose records outlive a kill of their server.
var killable = map[string]func(testing.TB) (args, env []string, kill, restart func(testing.TB)){
	"redis": func(tb testing.TB) ([]string, []string, func(testing.TB), func(testing.TB)) {
		tb.Helper()
		server := servers.Redis.Start(tb, "appendonly=yes", "appendfsync=always")
		return []string{"--store", "redis://" + server.Addr(), "--prefix", "shop:"}, nil, server.Kill, server.Restart
	},
	"postgres": func(tb testing.TB) ([]string, []string, func(testing.TB), func(testing.TB)) {
		tb.Helper()
		server := servers.StartPostgres(tb, "fsync=on")
		f := postgresFixture(tb, labtest.SetupPostgres(tb, server), server.URL())
		return []string{"--store", server.URL()}, f.env, server.Kill, server.Restart
	},
}

const (
	numClients = 4
	perKill    = 60  // requests between two kills: many more keys than one kill leaves unknown
	soakKills  = 300 // on each pair, with REPRISE_SOAK
	longKill   = 15  // every so many kills the store is away until each client has noticed
)

// TestProxyRunsAKeyAtMostOnceThroughKills kills the proxy, the upstream or the store
// while clients send and repeat requests.
func TestProxyRunsAKeyAtMostOnceThroughKills(t *testing.T) {
	t.Parallel()
	kills := 6
	if labtest.Soak(t) > 0 {
		kills = soakKills
	}
	for language, store := range map[string]string{"go": "postgres", "node": "redis", "python": "redis", "nginx": "redis"} {
		t.Run(store+"/"+language, func(t *testing.T) {
			t.Parallel()
			args, env, kill, restart := killable[store](t)
			s := startService(t, language)
			args = append(args, "--listen", servers.FreeAddr(t), "--upstream", s.url, "--scope-header", "Authorization")
			proxy := forward(t, env, args...)
			all, stopped := make([]*client, numClients), make(chan struct{})
			var running sync.WaitGroup
			for i := range all {
				all[i] = &client{TB: t, name: fmt.Sprintf("client-%d", i), url: proxy.URL, orders: map[string]*order{}}
				running.Go(func() { all[i].sendUntil(stopped) })
			}
			sent := func() (n int64) {
				for _, c := range all {
					n += c.sent.Load()
				}
				return n
			}
			for i := range kills {
				before := sent()
				await(t, "requests between two kills", func() bool { return sent() > before+perKill })
				time.Sleep(time.Duration(rand.N(20)) * time.Millisecond) //nolint:forbidigo // so that kills hit requests in every part of their way
				switch i % 3 {
				case 0:
					proxy.ends(syscall.SIGKILL)
					proxy = forward(t, env, args...)
				case 1:
					s.kill()
					s.start(t)
				default:
					kill(t)
					for _, c := range all {
						before := c.refused.Load()
						if i%longKill == 2 { // the requests that ran are answered, too
							await(t, "a refusal of each client", func() bool { return c.refused.Load() > before })
						}
					}
					restart(t)
				}
			}
			close(stopped)
			running.Wait()
			judgeKills(t, all, kills, s, language == "nginx")
		})
	}
}

// client sends requests with keys of its own.
type client struct {
	testing.TB

	name, url     string
	sent, refused atomic.Int64
	replays       int
	marked        int
	orders        map[string]*order // by their keys
}

// order is the knowledge of a client about a key.
type order struct {
	body    string  // of its requests
	first   *result // with 201; nil: there was none
	settled bool    // a response without a mark came: every retry has to get it
}

// sendUntil sends up to three requests with each key.
func (c *client) sendUntil(stopped chan struct{}) {
	http := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer http.CloseIdleConnections()
	for n := 0; ; n++ {
		key := fmt.Sprint(c.name, "-order-", n)
		c.orders[key] = &order{}
		if n%3 > 0 { // every third has no body, as the capture of a payment
			c.orders[key].body = fmt.Sprint("pay ", n)
		}
		for range 3 {
			select {
			case <-stopped:
				return
			default:
			}
			c.send(http, key)
		}
	}
}

// send sends a request and compares its response with those that the key had before.
func (c *client) send(http *http.Client, key string) *result {
	o := c.orders[key]
	var got *result
	await(c, "a connection to the proxy", func() bool { // it starts again
		got = post(c.Context(), http, c.url+"/orders", key, o.body)
		return !errors.Is(got.err, syscall.ECONNREFUSED)
	})
	c.sent.Add(1)
	mark := got.header.Get("Idempotency-Status")
	switch {
	case got.status == 503:
		c.refused.Add(1)
	case got.err != nil:
	case got.status != 201:
		if o.settled {
			c.Errorf("%s: first %s\nthen %s", key, o.first, got)
		}
	case mark != "" && (mark != "unrecorded" || got.replayed()):
		c.Errorf("%s: the mark %q of %s", key, mark, got)
	case o.first == nil: // a replay, if the first answer was lost on its way
		o.first = got
	case !got.replayed() || !bytes.Equal(got.body, o.first.body):
		c.Errorf("%s: first %s\nthen %s", key, o.first, got)
	default:
		c.replays++
	}
	if got.status == 201 {
		o.settled = o.settled || got.err == nil && mark == ""
		if mark != "" {
			c.marked++
		}
	}
	return got
}

// judgeKills repeats the request of each key, and compares the answers with the effects
// in the upstream. One that logs after its answer may lose the effect when it is killed.
func judgeKills(t *testing.T, all []*client, kills int, s *service, logsLate bool) {
	t.Helper()
	var keys, unsettled, replays, marked int
	answered := map[string]*result{}
	for _, c := range all {
		for key, o := range c.orders {
			had := o.settled
			o.settled = false // by this response, or not
			var got *result
			await(t, "an answer to "+key, func() bool { // some connections to the store are still broken
				got = c.send(nil, key)
				return got.status != http.StatusServiceUnavailable
			})
			switch {
			case had && !o.settled:
				t.Errorf("%s: first %s\nat last %s", key, o.first, got)
			case !o.settled:
				unsettled++
			default:
				answered[key] = o.first
			}
			keys++
		}
		replays, marked = replays+c.replays, marked+c.marked
	}
	effects := s.runs(t)
	for key, n := range effects {
		if n > 1 {
			t.Errorf("%s ran %d times", key, n)
		}
	}
	for key, first := range answered {
		if effects[key] == 0 && !logsLate {
			t.Errorf("%s was answered without an effect: %s", key, first)
		}
	}
	t.Logf("%d kills, %d keys, %d of them with an effect; %d replays equal to the first response; %d responses were marked unrecorded; in the end %d keys have no known outcome",
		kills, keys, len(effects), replays, marked, unsettled)
	// A kill breaks the requests that run, of which each client has one. All other outcomes
	// are known.
	if limit := numClients * kills; unsettled > limit {
		t.Errorf("%d of %d keys have no known outcome, want at most %d", unsettled, keys, limit)
	}
	if replays == 0 || kills == soakKills && marked == 0 {
		t.Errorf("%d responses were replayed, %d marked unrecorded", replays, marked)
	}
}
