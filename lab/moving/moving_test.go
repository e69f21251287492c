// Package moving tests the rollouts of docs/guides/moving.md: while an old release and
// the new one serve side by side, and after it, no key of either runs again. The rollout
// from the middleware of Fiber itself is in lab/fiber.
package moving

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func TestMain(m *testing.M) { servers.Main{M: m}.Run() }

const header = "Idempotency-Key"

// post sends a request with a key to a release, and returns the status of the answer.
func post(t *testing.T, release http.Handler, field, key string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", http.NoBody)
	r.Header.Set(field, key)
	w := httptest.NewRecorder()
	release.ServeHTTP(w, r)
	return w
}

// protect returns a release with the middleware.
func protect(t *testing.T, st store.Store, cfg protocol.Config, handler http.HandlerFunc) http.Handler {
	t.Helper()
	guard, err := protocol.New(st, cfg)
	labtest.Must(t, err)
	t.Cleanup(func() { labtest.Must(t, guard.Close(context.WithoutCancel(t.Context()))) })
	return reprisehttp.Middleware(guard, reprisehttp.Unscoped)(handler)
}

// keys are the orders in which the two releases of a rollout may get the request and its
// retry.
var keys = map[string]struct{ firstNew, retryNew bool }{
	"old-then-new": {false, true}, "new-then-old": {true, false}, "new-then-new": {true, true}, "old-then-old": {false, false},
}

// TestFromSetNX has a service that drops duplicates by SET NX on one side and the
// middleware around the same commands on the other.
func TestFromSetNX(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	var orders atomic.Int64
	old := func(w http.ResponseWriter, r *http.Request) {
		fresh, err := client.SetNX(r.Context(), prefix+"idem:"+r.Header.Get(header), "1", time.Hour).Result()
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case !fresh:
			http.Error(w, "duplicate", http.StatusConflict)
		default:
			orders.Add(1)
			w.WriteHeader(http.StatusCreated)
		}
	}
	during := protect(t, labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix + "reprise:"}), protocol.Config{Required: true},
		func(w http.ResponseWriter, r *http.Request) {
			fresh, err := claimOld(r.Context(), client, prefix+"idem:"+r.Header.Get(header))
			switch {
			case err != nil:
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			case !fresh:
				protocol.Release(r.Context()) // an old process may yet fail, and free the key
				http.Error(w, "duplicate", http.StatusConflict)
			default:
				orders.Add(1)
				w.WriteHeader(http.StatusCreated)
			}
		})
	for key, by := range keys {
		before := orders.Load()
		first := post(t, pick(by.firstNew, during, http.HandlerFunc(old)), header, key)
		retry := post(t, pick(by.retryNew, during, http.HandlerFunc(old)), header, key)
		if n := orders.Load() - before; first.Code != http.StatusCreated || n != 1 {
			t.Errorf("%s: answered %d, then %d, with %d orders, want one", key, first.Code, retry.Code, n)
		}
		if want := map[bool]int{true: http.StatusCreated, false: http.StatusConflict}[by.firstNew && by.retryNew]; retry.Code != want {
			t.Errorf("%s: the retry is answered %d, want %d", key, retry.Code, want)
		}
	}

	t.Run("a key that an old process freed runs", func(t *testing.T) {
		old := prefix + "idem:freed"
		if err := client.SetNX(t.Context(), old, "1", time.Hour).Err(); err != nil { // an old process runs it
			t.Fatal(err)
		}
		refused := post(t, during, header, "freed")
		if err := client.Del(t.Context(), old).Err(); err != nil { // and fails
			t.Fatal(err)
		}
		if retry := post(t, during, header, "freed"); refused.Code != http.StatusConflict || retry.Code != http.StatusCreated {
			t.Errorf("answered %d, then %d, want 409, then 201", refused.Code, retry.Code)
		}
	})

	t.Run("a later attempt is not its own duplicate", func(t *testing.T) {
		attempt := "the key of an operation"
		for range 2 {
			fresh, err := setOld(t.Context(), client, prefix+"idem:crashed", attempt)
			if err != nil || !fresh {
				t.Errorf("claimed the old key: %t, %v, want true in each attempt", fresh, err)
			}
		}
		if fresh, err := setOld(t.Context(), client, prefix+"idem:crashed", "1"); err != nil || fresh {
			t.Errorf("an old process claimed the key: %t, %v", fresh, err)
		}
	})
}

// claimOld claims a key as the old release does, once for all attempts of an operation.
func claimOld(ctx context.Context, client redis.Cmdable, key string) (bool, error) {
	attempt, _ := reprise.AttemptFrom(ctx)
	mine, err := attempt.Key("set-nx")
	if err != nil {
		return false, err // the middleware is missing
	}
	return setOld(ctx, client, key, mine)
}

func setOld(ctx context.Context, client redis.Cmdable, key, mine string) (bool, error) {
	holder, err := client.SetArgs(ctx, key, mine, redis.SetArgs{Mode: "NX", Get: true, TTL: time.Hour}).Result()
	if errors.Is(err, redis.Nil) {
		return true, nil // the key is new
	}
	return holder == mine, err
}

func pick(second bool, during, old http.Handler) http.Handler {
	if second {
		return during
	}
	return old
}

// TestFromAnotherHeader has clients that change the name of their field between a request
// and its retry, while a release that knows only the old name serves beside the new one.
func TestFromAnotherHeader(t *testing.T) {
	t.Parallel()
	var orders atomic.Int64
	handler := func(w http.ResponseWriter, _ *http.Request) { orders.Add(1); w.WriteHeader(http.StatusCreated) }
	st := memstore.New()
	old := protect(t, st, protocol.Config{Key: protocol.KeyHeader("X-Idempotency-Key")}, handler)
	during := protect(t, st, protocol.Config{Key: protocol.KeyHeader("Idempotency-Key", "X-Idempotency-Key")}, handler)
	for key, by := range keys { // clients have the old name while old processes serve
		before := orders.Load()
		first := post(t, pick(by.firstNew, during, old), "X-Idempotency-Key", key)
		retry := post(t, pick(by.retryNew, during, old), "X-Idempotency-Key", key)
		after := post(t, during, "Idempotency-Key", key)
		if n := orders.Load() - before; n != 1 || first.Code != retry.Code || first.Code != after.Code {
			t.Errorf("%s: answered %d, %d and %d, with %d orders, want one", key, first.Code, retry.Code, after.Code, n)
		}
	}
}
