package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	os.Exit(servers.Main{M: m}.Run())
}

// process starts a process of the API, and returns its address.
func process(t *testing.T, redisAddr string) string {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: redisAddr})
	store, err := repriseredis.Open(t.Context(), client, repriseredis.Config{Prefix: "tickets:"})
	servers.Must(t, err)
	router, guard, err := newRouter(client, store)
	servers.Must(t, err)
	server := httptest.NewServer(router)
	t.Cleanup(func() {
		server.Close()
		servers.Must(t, errors.Join(guard.Close(context.WithoutCancel(t.Context())), client.Close()))
	})
	return server.URL
}

func TestSeatsAreBookedOnce(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Shared(t)
	one, two := process(t, server.Addr()), process(t, server.Addr())
	show := rand.Text()
	seat := func(n int, user string) string { return `{"for":"` + user + `","seat":` + strconv.Itoa(n) + `}` }
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i, step := range []struct {
		addr, user, key string
		status          int
		body            string
		replayed        bool
	}{
		{one, "ada", "1", 201, seat(1, "ada"), false},
		{two, "ada", "1", 201, seat(1, "ada"), true},
		{two, "bob", "1", 201, seat(2, "bob"), false},
		{one, "bob", "2", 201, seat(3, "bob"), false},
		{one, "ada", "2", 409, `{"error":"sold out"}`, false},
		{two, "ada", "2", 409, `{"error":"sold out"}`, true},
		{two, "bob", "2", 201, seat(3, "bob"), true},
		{two, "bob", "", 400, "", false},
		{two, "eve", "1", 401, "", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, step.addr+"/shows/"+show+"/seats", http.NoBody)
		servers.Must(t, err)
		r.SetBasicAuth(step.user, "pw-of-"+step.user)
		if step.key != "" {
			r.Header.Set("Idempotency-Key", show+step.key)
		}
		res, err := client.Do(r)
		servers.Must(t, err)
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		replayed := res.Header.Get("Idempotent-Replayed") == "true"
		if err != nil || res.StatusCode != step.status || replayed != step.replayed || step.body != "" && string(body) != step.body {
			t.Errorf("step %d: %d %s, replayed %v, %v; want %+v", i+1, res.StatusCode, body, replayed, err, step)
		}
	}
}
