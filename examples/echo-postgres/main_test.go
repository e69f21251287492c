package main

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main{M: m}.Run()) }

// process starts a process of the API on a database, and returns its address.
func process(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	store, err := openStore(t.Context(), pool)
	servers.Must(t, err)
	e, guard, err := newAPI(store)
	servers.Must(t, err)
	server := httptest.NewServer(e)
	t.Cleanup(func() {
		server.Close()
		servers.Must(t, guard.Close(context.WithoutCancel(t.Context())))
	})
	return server.URL
}

func TestTicketsAreSoldOnceAndRefusedOnesNever(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), servers.StartPostgres(t, "fsync=on").URL())
	servers.Must(t, err)
	t.Cleanup(pool.Close)
	one, two := process(t, pool), process(t, pool)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	keys := map[string]string{"first": rand.Text(), "second": rand.Text(), "": ""}
	bodies := map[string]string{}
	for i, step := range []struct {
		addr, buyer, key string
		status           int
		replayed         bool
		sold             int // in the database, after it
	}{
		{one, "ada", "first", 201, false, 1},
		{two, "ada", "first", 201, true, 1},
		{two, "bob", "first", 201, false, 2},
		{one, "ada", "second", 409, false, 2}, // its writes are undone
		{two, "ada", "second", 409, true, 2},
		{one, "bob", "first", 201, true, 2},
		{one, "bob", "", 400, false, 2},
		{one, "", "first", 403, false, 2},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, step.addr+"/shows/hamlet/tickets", http.NoBody)
		servers.Must(t, err)
		r.Header.Set("X-Buyer", step.buyer)
		if step.key != "" {
			r.Header.Set("Idempotency-Key", keys[step.key])
		}
		res, err := client.Do(r)
		servers.Must(t, err)
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		replayed := res.Header.Get("Idempotent-Replayed") == "true"
		if err != nil || res.StatusCode != step.status || replayed != step.replayed {
			t.Errorf("step %d: %d %s, replayed %v, %v; want %+v", i+1, res.StatusCode, body, replayed, err, step)
		}
		if who := step.buyer + step.key; !replayed {
			bodies[who] = string(body)
		} else if string(body) != bodies[who] {
			t.Errorf("step %d: replayed %s of %s", i+1, body, bodies[who])
		}
		var sold int
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM tickets").Scan(&sold); err != nil || sold != step.sold {
			t.Errorf("step %d: %d tickets in the database, %v; want %d", i+1, sold, err, step.sold)
		}
	}
}
