package program

import (
	"fmt"
	"math/rand/v2"
	"net/http"
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
	soakKills = 300 // on each pair, with REPRISE_SOAK
	longKill  = 15  // every so many kills the store is away until each client has noticed
)

// TestProxyRunsAKeyAtMostOnceThroughKills kills the proxy, the upstream or the store
// while clients send and repeat requests.
func TestProxyRunsAKeyAtMostOnceThroughKills(t *testing.T) {
	t.Parallel()
	kills := 6
	if labtest.Soak(t) > 0 {
		kills = soakKills
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
				args = append(args, "--listen", servers.FreeAddr(t), "--upstream", s.url(), "--scope-header", "Authorization")
				proxy := forward(t, env, args...)
				c := startClients(t, proxy.URL)
				for i := range kills {
					before := c.sum().sent
					await(t, "requests between two kills", func() bool { return c.sum().sent > before+perKill })
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
						if i%longKill == 2 { // the requests that ran are answered, too
							c.allRefused(t)
						}
						restart(t)
					}
				}
				c.stop()
				c.repeat(t)
				c.judge(t, kills, s.runs(t), language == "nginx")
			})
		}
	}
}

// judge compares the answers to clients with the effects in the upstream. One that logs
// after its answer may lose the effect when it is killed.
func (c *clients) judge(tb testing.TB, kills int, effects map[string]int, logsLate bool) {
	tb.Helper()
	most := 0
	for key, n := range effects {
		if most = max(most, n); n > 1 {
			tb.Errorf("%s ran %d times", key, n)
		}
	}
	var answered, unsettled int
	for key, o := range c.orders {
		switch {
		case o.settled:
			answered++
			if effects[key] == 0 && !logsLate {
				tb.Errorf("%s was answered without an effect: %s", key, o.first)
			}
		default:
			unsettled++
		}
	}
	tb.Logf("%d kills, %d requests (%d refused), %d keys, %d of them with an effect, at most %d for a key; %d replays equal to the first response; "+
		"%d responses were marked unrecorded; in the end %d keys have a response, %d an unknown outcome or a lease",
		kills, c.sent, c.refused, len(c.orders), len(effects), most, c.replays, c.marked, answered, unsettled)
	// A kill breaks the requests that run, of which each client has one. All other outcomes
	// are known.
	if limit := numClients * kills; unsettled > limit {
		tb.Errorf("%d of %d keys have no known outcome, want at most %d", unsettled, len(c.orders), limit)
	}
	if c.replays == 0 {
		tb.Error("no response was replayed")
	}
	if kills == soakKills && c.marked == 0 {
		tb.Error("no response was marked unrecorded, although the store was away")
	}
}

// settle waits so that kills hit requests in every part of their way.
func settle(d time.Duration) { <-time.After(d) }

// keyOf returns the key of the n-th order of a client.
func keyOf(client, n int) string { return fmt.Sprintf("client-%d-order-%d", client, n) }

// bodyOf returns the body of the n-th order of a client: every third has none, as the
// capture of a payment.
func bodyOf(n int) string {
	if n%3 == 0 {
		return ""
	}
	return fmt.Sprintf("pay %d", n)
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
}
