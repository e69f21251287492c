package labfiber_test

import (
	"errors"
	"fmt"
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
	guard, err := protocol.New(st, protocol.Config{
		Key:     protocol.KeyHeader("Idempotency-Key", "X-Idempotency-Key"),
		Methods: []string{"POST", "PUT", "PATCH", "DELETE"},
		Limits:  protocol.Limits{RequestBody: 4 << 20, ResponseBody: 4 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close(t.Context())
	var orders atomic.Int64
	release := func(layers ...fiber.Handler) *fiber.App {
		app := fiber.New()
		app.All("/orders", append(layers, func(c *fiber.Ctx) error {
			order := orders.Add(1)
			switch c.Query("first") {
			case "fails": // with a response, which Fiber's layer keeps
				return c.Status(fiber.StatusBadGateway).JSON(fiber.Map{"order": order})
			case "errs": // with an error, which it does not keep
				if order%2 == 1 {
					return fiber.NewError(fiber.StatusPaymentRequired)
				}
			}
			return c.Status(fiber.StatusCreated).JSON(fiber.Map{"order": order})
		})...)
		return app
	}
	ours := reprisefiber.Middleware(guard, reprisefiber.Unscoped)
	theirs := func() fiber.Handler {
		return idempotency.New(idempotency.Config{Storage: shared{client, prefix + "fiber:", t}})
	}
	mirrored := func(c *fiber.Ctx) error {
		err := c.Next()
		if idempotency.WasPutToCache(c) {
			protocol.Keep(c.UserContext())
		} else {
			protocol.Release(c.UserContext())
		}
		return err
	}
	old, during, after := release(theirs()), release(ours, mirrored, theirs()), release(ours)
	send := func(app *fiber.App, method, first, key, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "/orders?first="+first, strings.NewReader(body))
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
	for i, c := range []struct {
		releases      []*fiber.App
		method, first string
		status        int
	}{
		{[]*fiber.App{old, during, during}, http.MethodPost, "", 201},             // a retry after the deploy, and one after that
		{[]*fiber.App{during, old, during}, http.MethodPost, "", 201},             // side by side
		{[]*fiber.App{during, during, old}, http.MethodPost, "", 201},             // rolled back
		{[]*fiber.App{during, during, after}, http.MethodDelete, "", 201},         // the last step
		{[]*fiber.App{during, after, after, during}, http.MethodPut, "", 201},     // and back from it
		{[]*fiber.App{during, old, during, after}, http.MethodPost, "fails", 502}, // a 5xx that the old layer keeps
	} {
		key := fmt.Sprintf("10000000-0000-4000-8000-%012d", i)
		before, first := orders.Load(), ""
		for i, app := range c.releases {
			status, answer := send(app, c.method, c.first, key, strings.Repeat("-", 3<<20))
			if i == 0 {
				first = answer
			}
			if status != c.status || answer != first {
				t.Errorf("%s: release %d answered %d %q, want %d %q", key, i, status, answer, c.status, first)
			}
		}
		if n := orders.Load() - before; n != 1 {
			t.Errorf("%s: %d orders, want 1", key, n)
		}
	}
	key := "10000000-0000-4000-8000-00000000000a" // an error is not kept, as it was not
	orders.Store(orders.Load() / 2 * 2)
	for i, c := range []struct {
		app    *fiber.App
		status int
	}{{during, 402}, {old, 201}, {during, 201}} {
		if status, answer := send(c.app, http.MethodPost, "errs", key, ""); status != c.status {
			t.Errorf("after an error, request %d: %d %q, want %d", i, status, answer, c.status)
		}
	}
	key = "10000000-0000-4000-8000-00000000000b"
	_, first := send(old, http.MethodPost, "", key, "a book")
	if _, answer := send(during, http.MethodPost, "", key, "a pen"); answer != first {
		t.Errorf("another body at both layers: %q, want the old answer %q", answer, first)
	}
	if _, answer := send(after, http.MethodPost, "", key, "a pen"); answer == first {
		t.Errorf("the old answer %q was recorded for another body", first)
	}
}
