package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func TestMain(m *testing.M) { servers.Main{M: m}.Run() }

// process starts a process of the API, and returns its address.
func process(t *testing.T, addr string, sent *atomic.Int64) string {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	store, err := repriseredis.Open(t.Context(), client, repriseredis.Config{Prefix: "messages:"})
	servers.Must(t, err)
	app, guard, err := newApp(store, func(string, string) { sent.Add(1) })
	servers.Must(t, err)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	servers.Must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(ln) }()
	t.Cleanup(func() {
		servers.Must(t, errors.Join(app.Shutdown(), <-ended, guard.Close(context.WithoutCancel(t.Context())), client.Close()))
	})
	return ln.Addr().String()
}

func TestMessagesAreSentOnce(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	server := servers.Redis.Shared(t)
	one, two := process(t, server.Addr(), &sent), process(t, server.Addr(), &sent)
	unique := rand.Text()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i, step := range []struct {
		addr, token, key, body string
		status                 int
		replayed               string
		sent                   int64
	}{
		{one, "acme", "k1", `{"To":"+49","Text":"hi"}`, 201, "", 1},
		{one, "acme", "k1", `{"To":"+49","Text":"hi"}`, 201, "true", 1},
		{two, "acme", "k1", `{"To":"+49","Text":"hi"}`, 201, "true", 1},
		{two, "acme", "k1", `{"To":"+49","Text":"ho"}`, 422, "", 1},
		{two, "globex", "k1", `{"To":"+49","Text":"hi"}`, 201, "", 2},
		{one, "acme", "k2", `{"Text":"hi"}`, 422, "", 2},
		{two, "acme", "k2", `{"Text":"hi"}`, 422, "true", 2},
		{one, "acme", "", `{"To":"+49"}`, 400, "", 2},
		{one, "nobody", "k3", `{"To":"+49"}`, 401, "", 2},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+step.addr+"/messages", strings.NewReader(step.body))
		servers.Must(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+step.token+"-token")
		if step.key != "" {
			r.Header.Set("Idempotency-Key", unique+step.key)
		}
		resp, err := client.Do(r)
		servers.Must(t, err)
		resp.Body.Close()
		if got := resp.Header.Get("Idempotent-Replayed"); resp.StatusCode != step.status || got != step.replayed || sent.Load() != step.sent {
			t.Errorf("step %d: %d, replayed %q, %d sent; want %d, %q, %d", i+1, resp.StatusCode, got, sent.Load(), step.status, step.replayed, step.sent)
		}
	}
}
