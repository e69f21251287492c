package program

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"

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

// The proxy, or its store, is killed while a request runs in the upstream. A retry does
// not run it again, and gets the first response only if that was recorded after all.
func TestProxyRunsAKeyOnceThroughKills(t *testing.T) {
	t.Parallel()
	for name, open := range killable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args, env, killStore, restartStore := open(t)
			entered, held := make(chan struct{}), make(chan struct{})
			u, runs := startUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
				entered <- struct{}{}
				<-held
				w.WriteHeader(http.StatusCreated)
			})
			args = append(args, "--listen", servers.FreeAddr(t), "--upstream", u.URL, "--scope-header", "Authorization")
			proxy := forward(t, env, args...)
			killProxy := func(testing.TB) { proxy.ends(syscall.SIGKILL) }
			restartProxy := func(tb testing.TB) { proxy = forward(tb, env, args...) }
			for i, c := range []struct {
				kill, restart func(testing.TB)
				status        int // of the first response
				mark          string
			}{{killProxy, restartProxy, 0, ""}, {killStore, restartStore, http.StatusCreated, "unrecorded"}} {
				key, answered := fmt.Sprint("k", i), make(chan *result, 1)
				go func() { answered <- post(t.Context(), nil, proxy.URL+"/orders", key, "pay") }()
				<-entered
				c.kill(t)
				held <- struct{}{}
				if first := <-answered; first.status != c.status || first.header.Get("Idempotency-Status") != c.mark {
					t.Errorf("kill %d: the first client got %s", i, first)
				}
				c.restart(t)
				var again *result
				labtest.Eventually(t, "an answer of the store", func() bool { // some connections to it are still broken
					again = post(t.Context(), nil, proxy.URL+"/orders", key, "pay")
					return again.status != http.StatusServiceUnavailable
				})
				if again.status != http.StatusConflict && (again.status != c.status || !again.replayed()) {
					t.Errorf("kill %d: the retry got %s", i, again)
				}
				if n := runs.Load(); n != int64(i)+1 {
					t.Errorf("kill %d: %d runs", i, n)
				}
			}
		})
	}
}
