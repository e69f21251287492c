package labfiber_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/idempotency"
	"github.com/redis/go-redis/v9"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// shared is the storage of Fiber's middleware in Redis, as several processes use it.
type shared struct {
	client redis.Cmdable
	prefix string
	t      *testing.T
}

func (s shared) Get(key string) ([]byte, error) {
	value, err := s.client.Get(s.t.Context(), s.prefix+key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return value, err
}

func (s shared) Set(key string, value []byte, life time.Duration) error {
	return s.client.Set(s.t.Context(), s.prefix+key, value, life).Err()
}

func (s shared) Delete(key string) error { return s.client.Del(s.t.Context(), s.prefix+key).Err() }
func (s shared) Reset() error            { return nil }
func (s shared) Close() error            { return nil }

// TestFromFibersOwnMiddleware has the rollout of docs/guides/moving.md: releases with
// Fiber's middleware alone, with both, and with ours alone.
func TestFromFibersOwnMiddleware(t *testing.T) {
	t.Parallel()
	client, prefix := labtest.RedisClient(t, servers.Redis.Shared(t).Addr()), labtest.RedisPrefix()
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix + "reprise:"})
	guard, err := protocol.New(st, protocol.Config{Key: protocol.KeyHeader("Idempotency-Key", "X-Idempotency-Key")})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close(t.Context())
	var orders atomic.Int64
	release := func(layers ...fiber.Handler) *fiber.App {
		app := fiber.New()
		app.Post("/orders", append(layers, func(c *fiber.Ctx) error {
			return c.Status(fiber.StatusCreated).JSON(fiber.Map{"order": orders.Add(1)})
		})...)
		return app
	}
	ours := reprisefiber.Middleware(guard, reprisefiber.Unscoped)
	theirs := func() fiber.Handler {
		return idempotency.New(idempotency.Config{Storage: shared{client, prefix + "fiber:", t}})
	}
	unrecorded := func(c *fiber.Ctx) error {
		err := c.Next()
		if idempotency.IsFromCache(c) {
			protocol.Release(c.UserContext())
		}
		return err
	}
	old, during, after := release(theirs()), release(ours, unrecorded, theirs()), release(ours)
	post := func(app *fiber.App, key, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(body))
		r.Header.Set("X-Idempotency-Key", key)
		resp, err := app.Test(r, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(answer)
	}
	for key, releases := range map[string][]*fiber.App{
		"10000000-0000-4000-8000-000000000001": {old, during, during},          // a retry after the deploy, and one after that
		"10000000-0000-4000-8000-000000000002": {during, old, during},          // side by side
		"10000000-0000-4000-8000-000000000003": {during, during, old},          // rolled back
		"10000000-0000-4000-8000-000000000004": {during, during, after},        // the last step
		"10000000-0000-4000-8000-000000000005": {during, after, after, during}, // and back from it
	} {
		before, first := orders.Load(), ""
		for i, app := range releases {
			status, answer := post(app, key, "")
			if i == 0 {
				first = answer
			}
			if status != http.StatusCreated || answer != first {
				t.Errorf("%s: release %d answered %d %q, want %q", key, i, status, answer, first)
			}
		}
		if n := orders.Load() - before; n != 1 {
			t.Errorf("%s: %d orders, want 1", key, n)
		}
	}
	key := "10000000-0000-4000-8000-000000000006"
	_, first := post(old, key, "a book")
	if _, answer := post(during, key, "a pen"); answer != first {
		t.Errorf("another body at both layers: %q, want the old answer %q", answer, first)
	}
	if _, answer := post(after, key, "a pen"); answer == first {
		t.Errorf("the old answer %q was recorded for another body", first)
	}
}
