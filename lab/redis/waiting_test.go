package redis

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The end of an attempt is published only when a caller waits for it.
func TestRedisOnlyWatchedEndsArePublished(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	published := func() int { return redisCalls(t, client)["spublish"] }
	for _, c := range []struct {
		name    string
		watched bool
		end     func(r store.ClaimRequest, granted store.ClaimResult) error
		want    int
	}{
		{"complete", false, func(r store.ClaimRequest, granted store.ClaimResult) error {
			return st.Complete(t.Context(), redisCompletion(r, granted, "answer"))
		}, 0},
		{"complete without knowing the claim", false, func(r store.ClaimRequest, _ store.ClaimResult) error {
			return redisComplete(t, st, r, "answer")
		}, 0},
		{"release", false, func(r store.ClaimRequest, _ store.ClaimResult) error {
			return st.Release(t.Context(), r.ID, r.Owner)
		}, 0},
		{"complete watched", true, func(r store.ClaimRequest, granted store.ClaimResult) error {
			return st.Complete(t.Context(), redisCompletion(r, granted, "answer"))
		}, 1},
		{"renew and complete watched", true, func(r store.ClaimRequest, granted store.ClaimResult) error {
			if _, err := st.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}}); err != nil {
				return err
			}
			return st.Complete(t.Context(), redisCompletion(r, granted, "answer"))
		}, 1},
		{"claim again and complete watched", true, func(r store.ClaimRequest, _ store.ClaimResult) error {
			again := redisMustClaim(t, st, r, store.Claimed)
			return st.Complete(t.Context(), redisCompletion(r, again, "answer"))
		}, 1},
		{"release watched", true, func(r store.ClaimRequest, _ store.ClaimResult) error {
			return st.Release(t.Context(), r.ID, r.Owner)
		}, 1},
	} {
		r := redisClaim()
		granted := redisMustClaim(t, st, r, store.Claimed)
		if c.watched {
			for range 3 {
				redisWaits(t, st, r)
			}
		}
		before := published()
		redisWant(t, c.name, c.end(r, granted), nil)
		if n := published() - before; n != c.want {
			t.Errorf("%s publishes %d times, want %d", c.name, n, c.want)
		}
	}

	// A record that an operator ends may have unknown watchers.
	for _, resolution := range []store.Resolution{{Forget: true}, {Payload: []byte("answer"), Retention: time.Hour}} {
		r := redisGolden(t, client, labtest.ServicePrefix, redisGoldenClaimed, time.Minute)
		lapsed, err := st.Inspect(t.Context(), r.ID)
		redisWant(t, "inspect", err, nil)
		resolution.Fence = lapsed.Fence
		before := published()
		redisWant(t, "resolve", st.Resolve(t.Context(), r.ID, resolution), nil)
		if n := published() - before; n != 1 {
			t.Errorf("%+v publishes %d times, want once", resolution, n)
		}
	}
}

// Marking a record as watched writes it once, however often its waiters ask.
func TestRedisWaitersWriteOnce(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Start(t).Addr())
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	r := redisClaim()
	redisMustClaim(t, st, r, store.Claimed)
	before := redisWritten(t, client)
	for range 10 {
		redisWaits(t, st, r)
	}
	if n := redisWritten(t, client) - before; n != 1 {
		t.Errorf("ten waiting claims wrote %d times, want once", n)
	}
}

// The claim of a waiter is decided by the script alone, by the rules of a native claim: a
// record belongs to its request, however its attempt ended, and a completed one to no
// other.
func TestRedisAWaitersClaimIsBoundToItsRequest(t *testing.T) {
	t.Parallel()
	st := labtest.RedisStore(t, labtest.RedisClient(t, servers.Redis.Shared(t).Addr()), repriseredis.Config{Prefix: labtest.RedisPrefix()})
	running, lapsed, completed := redisClaim(), redisClaim(), redisClaim()
	lapsed.Lease = 10 * time.Millisecond
	for _, r := range []store.ClaimRequest{running, lapsed, completed} {
		redisMustClaim(t, st, r, store.Claimed)
	}
	redisWant(t, "complete", redisComplete(t, st, completed, "answer"), nil)
	redisEventually(t, "the lease ends", func() bool {
		r, err := st.Inspect(t.Context(), lapsed.ID)
		return err == nil && r.State == store.StateLapsed
	})

	for name, r := range map[string]store.ClaimRequest{"running": running, "lapsed": lapsed, "completed": completed} {
		before, err := st.Inspect(t.Context(), r.ID)
		redisWant(t, "inspect", err, nil)
		other := r
		other.Owner, other.Waiting = store.NewOwner(), true
		other.Fingerprint[31]++
		redisMustClaim(t, st, other, store.Mismatch)
		after, err := st.Inspect(t.Context(), r.ID)
		redisWant(t, "inspect", err, nil)
		if after.State != before.State || after.Attempt != before.Attempt || after.Fence != before.Fence {
			t.Errorf("%s: another request made it %+v, was %+v", name, after, before)
		}
	}
	waiter := completed
	waiter.Owner, waiter.Waiting = store.NewOwner(), true
	if got := redisMustClaim(t, st, waiter, store.Completed); string(got.Payload) != "answer" {
		t.Errorf("the waiter gets %q", got.Payload)
	}
	redisWant(t, "complete what lapsed", redisComplete(t, st, lapsed, "late"), nil)
}

// A duplicate that waits in another process has its result at once, not at its next poll,
// and so has one whose fellow watcher died.
func TestRedisWaiterIsNotifiedAtOnce(t *testing.T) {
	t.Parallel()
	const keys, polls = 96, 7 // after which it polls twice a second
	addr := servers.Redis.Start(t).Addr()
	config := repriseredis.Config{}
	process := func() (*reprise.Engine, *redis.Client) {
		client := labtest.RedisClient(t, addr)
		return redisEngine(t, labtest.RedisStore(t, client, config), reprise.Config{}), client
	}
	admin := labtest.RedisClient(t, addr)
	owner, _ := process()
	dead, dying := process()
	waiter, _ := process()
	op := func(i int) reprise.Operation {
		return reprise.Operation{Scope: "s", Key: strconv.Itoa(i), Wait: time.Minute}
	}
	attempts := make([]*reprise.Attempt, keys)
	for i := range attempts {
		got, err := owner.Begin(t.Context(), op(i))
		redisWant(t, "begin", err, nil)
		attempts[i] = got.Attempt
	}

	// Another process waits for every second operation first, and dies.
	leaving, leave := context.WithCancel(t.Context())
	calls := redisCalls(t, admin)["evalsha"]
	for i := 0; i < keys; i += 2 {
		go func() { _, _ = dead.Begin(leaving, op(i)) }()
	}
	redisEventually(t, "the first watchers ask", func() bool { return redisCalls(t, admin)["evalsha"]-calls >= keys })
	_ = dying.Close()
	leave()

	ended := make([]chan time.Time, keys)
	calls = redisCalls(t, admin)["evalsha"]
	for i := range ended {
		ended[i] = make(chan time.Time, 1)
		go func() {
			got, err := waiter.Begin(t.Context(), op(i))
			if err != nil || got.Outcome != reprise.Replayed {
				t.Errorf("the duplicate: %v, %v", got.Outcome, err)
			}
			ended[i] <- time.Now()
		}()
	}
	redisEventually(t, "the waiters poll seldom", func() bool { return redisCalls(t, admin)["evalsha"]-calls >= keys*polls })

	var took []time.Duration
	for i, a := range attempts {
		_, err := a.Complete(reprise.Completion{Payload: []byte("answer")})
		redisWant(t, "complete", err, nil)
		done := time.Now()
		took = append(took, (<-ended[i]).Sub(done))
	}
	slices.Sort(took)
	t.Logf("answers after %v", took)
	// Of 96 that poll, half have their answer within 250ms, and hardly ever within 200ms.
	if median := took[keys/2]; median > 200*time.Millisecond {
		t.Errorf("half of the waiters had their answer after more than %v: they polled", median)
	}
}
