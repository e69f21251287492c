package local

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/storetest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	repriselocal "github.com/reprise-go/reprise/local"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// maxAge is how long an entry may hide what a test does to a record by hand. It is longer
// than the records that the suite lets expire.
const maxAge = 500 * time.Millisecond

func cached(tb testing.TB, inner reprise.Store) reprise.Store {
	return hotOver(tb, inner, repriselocal.Config{MaxAge: maxAge})
}

// hot replays what it replays twice more, so that every replay that a caller sees comes
// from the cache.
type hot struct{ *repriselocal.Store }

func hotOver(tb testing.TB, inner reprise.Store, c repriselocal.Config) reprise.Store {
	tb.Helper()
	s, err := repriselocal.New(inner, c)
	if err != nil {
		tb.Fatal(err)
	}
	return hot{s}
}

// Claim implements [reprise.Store].
func (h hot) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	got, err := h.Store.Claim(ctx, r)
	for range 2 {
		if err == nil && got.Outcome == reprise.Completed {
			got, err = h.Store.Claim(ctx, r)
		}
	}
	return got, err
}

// TestLocalOverMemory: two caches over one store are two processes. It runs in a bubble,
// with the default MaxAge.
func TestLocalOverMemory(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB, reprise.Store) reprise.Store{
		"each replay from the cache": func(tb testing.TB, inner reprise.Store) reprise.Store {
			return hotOver(tb, inner, repriselocal.Config{})
		},
		"as it is": func(tb testing.TB, inner reprise.Store) reprise.Store {
			return hotOver(tb, inner, repriselocal.Config{}).(hot).Store
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(testing.TB) storetest.Fixture {
				inner := sync.OnceValue(memstore.New)
				return storetest.Fixture{Open: func(tb testing.TB) reprise.Store { return open(tb, inner()) }}
			})
		})
	}
}

func TestLocalOverRedis(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Shared(t)
	storetest.Run(t, func(testing.TB) storetest.Fixture {
		c := repriseredis.Config{Prefix: labtest.RedisPrefix()}
		return storetest.Fixture{
			Open: func(tb testing.TB) reprise.Store {
				return cached(tb, labtest.RedisStore(tb, labtest.RedisClient(tb, server.Addr()), c))
			},
			Advance: conformance.Sleep,
			Corrupt: func(tb testing.TB, id reprise.ID, how storetest.Corruption) {
				if how != storetest.UnknownVersion {
					tb.Skip("one way to damage a record is enough to see it through the cache")
				}
				damage(tb, labtest.RedisClient(tb, server.Addr()), c.Prefix+string(id[:]))
				conformance.Sleep(tb, maxAge) // and it shows
			},
		}
	})
}

// damage gives a record another version.
func damage(tb testing.TB, client *redis.Client, key string) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	record, err := client.Get(ctx, key).Bytes()
	if err == nil {
		record[0] += 16
		err = client.Set(ctx, key, record, redis.KeepTTL).Err()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func TestLocalOverPostgres(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	storetest.Run(t, func(tb testing.TB) storetest.Fixture {
		f := labtest.SetupPostgres(tb, server, labtest.MaxConns(4))
		return storetest.Fixture{
			Open:    func(tb testing.TB) reprise.Store { return cached(tb, f.Leased(tb)) },
			Advance: conformance.Sleep,
		}
	})
}

// TestLocalOverTransactionalPostgres: the suite makes a schema for each case, which is
// for a soak. What differs of Atomic claims is below.
func TestLocalOverTransactionalPostgres(t *testing.T) {
	t.Parallel()
	if labtest.Soak(t) == 0 {
		t.Run("an attempt", localAttempt)
		return
	}
	server := servers.SharedPostgres(t)
	storetest.Run(t, func(tb testing.TB) storetest.Fixture {
		f := labtest.SetupPostgres(tb, server, labtest.MaxConns(16))
		return storetest.Fixture{
			Open:    func(tb testing.TB) reprise.Store { return cached(tb, f.Transactional(tb)) },
			Advance: conformance.Sleep,
			Atomic:  true,
			Waivers: []conformance.Waiver{{
				Case:   "claim-mismatch-in-flight",
				Reason: "the fingerprint of an attempt in another process is not visible before its transaction commits: 409 instead of 422 until then",
			}},
		}
	})
}

// localAttempt takes an attempt with a transaction through the cache.
func localAttempt(t *testing.T) {
	t.Parallel()
	f := labtest.SetupPostgres(t, servers.SharedPostgres(t), labtest.MaxConns(4))
	store := cached(t, f.Transactional(t))
	r := reprise.ClaimRequest{ID: reprise.ID{1}, Owner: reprise.NewOwner(), Lease: time.Minute, Retention: time.Hour}
	claim := func(want reprise.Outcome) reprise.ClaimResult {
		t.Helper()
		got, err := store.Claim(t.Context(), r)
		if err != nil || got.Outcome != want {
			t.Fatalf("claim answered %v, %v; want %v", got.Outcome, err, want)
		}
		return got
	}
	if !claim(reprise.Claimed).Atomic {
		t.Error("the claim is not Atomic")
	}
	binder, ok := reprise.As[reprise.ContextBinder](store)
	if !ok {
		t.Fatal("the decorator hides the transaction")
	}
	if _, ok := reprisepg.Tx(binder.Bind(t.Context(), r.ID, r.Owner)); !ok {
		t.Error("the handler has no transaction")
	}
	completion := reprise.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: []byte("answer"), Retention: time.Hour}
	if err := store.Complete(t.Context(), completion); err != nil {
		t.Fatal(err)
	}
	for range 2 { // from the cache, and then from the table
		if got := claim(reprise.Completed); string(got.Payload) != "answer" {
			t.Errorf("replayed %q", got.Payload)
		}
		conformance.Sleep(t, maxAge)
	}
}

// What an operator deletes in the server by hand has an effect within MaxAge, and nothing
// but the claims that miss reaches the server.
func TestLocalOverRedisByHand(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	prefix := labtest.RedisPrefix()
	store := cached(t, labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix}))
	r := reprise.ClaimRequest{ID: reprise.ID{1}, Owner: reprise.NewOwner(), Lease: time.Minute, Retention: time.Hour}
	claim := func() reprise.ClaimResult {
		t.Helper()
		got, err := store.Claim(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	claim()
	if err := store.Complete(t.Context(), reprise.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: []byte("answer"), Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	claim() // which asks the server
	start := time.Now()
	if err := client.Del(t.Context(), prefix+string(r.ID[:])).Err(); err != nil {
		t.Fatal(err)
	}
	r.Owner = reprise.NewOwner()
	if got := claim(); got.Outcome != reprise.Completed && time.Since(start) < maxAge/2 {
		t.Errorf("answered %v from the server", got.Outcome)
	}
	conformance.Sleep(t, maxAge)
	if got := claim(); got.Outcome != reprise.Claimed {
		t.Errorf("%v after the record was deleted by hand: %v", maxAge, got.Outcome)
	}
}
