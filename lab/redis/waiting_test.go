package redis

import (
	"context"
	"strconv"
	"sync"
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

// A duplicate that waits in another process is notified of its result, also one whose
// fellow watcher died. The engine then asks at once: TestWatchIsAHint of core.
func TestRedisWaitersInAnotherProcessAreNotified(t *testing.T) {
	t.Parallel()
	const keys = 96
	addr := servers.Redis.Start(t).Addr()
	admin := labtest.RedisClient(t, addr)
	process := func() (*redisHeard, *redis.Client) {
		client := labtest.RedisClient(t, addr)
		return &redisHeard{Store: labtest.RedisStore(t, client, repriseredis.Config{}), t: t}, client
	}
	st, _ := process()
	owner := redisEngine(t, st, reprise.Config{})
	st, dying := process()
	dead := redisEngine(t, st, reprise.Config{})
	st, _ = process()
	waiter := redisEngine(t, st, reprise.Config{})
	_, stop := redisWatch(t, st.Store, redisClaim().ID) // it has subscribed
	defer stop()
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

	var waiting sync.WaitGroup
	for i := range keys {
		waiting.Go(func() {
			got, err := waiter.Begin(t.Context(), op(i))
			if err != nil || got.Outcome != reprise.Replayed {
				t.Errorf("the duplicate: %v, %v", got.Outcome, err)
			}
		})
	}
	redisEventually(t, "the waiters have asked", func() bool { return st.count(&st.asked) == keys })
	for _, a := range attempts {
		_, err := a.Complete(reprise.Completion{Payload: []byte("answer")})
		redisWant(t, "complete", err, nil)
	}
	waiting.Wait()
	watched := st.count(&st.watched)
	redisEventually(t, "every waiter that watches is notified", func() bool { return st.count(&st.heard) == watched })
	if watched == 0 {
		t.Error("no waiter watched, so nothing was shown")
	}
}

// redisHeard notes the records of which a waiter asked in vain, that one watches, and of
// whose end one was notified. It keeps watches until the test ends.
type redisHeard struct {
	*repriseredis.Store

	t                     *testing.T
	asked, watched, heard sync.Map
}

func (*redisHeard) count(ids *sync.Map) (n int) {
	ids.Range(func(any, any) bool { n++; return true })
	return n
}

// Claim implements [store.Store].
func (s *redisHeard) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	got, err := s.Store.Claim(ctx, r)
	if err == nil && r.Waiting && got.Outcome == store.InProgress {
		s.asked.Store(r.ID, true)
	}
	return got, err
}

// Watch implements [store.Waiter].
func (s *redisHeard) Watch(ctx context.Context, id store.ID) (<-chan struct{}, func(), error) {
	changed, stop, err := s.Store.Watch(context.WithoutCancel(ctx), id)
	if err != nil {
		return nil, nil, err
	}
	s.watched.Store(id, true)
	passed := make(chan struct{}, 1)
	go func() {
		defer stop()
		select {
		case <-changed:
			s.heard.Store(id, true)
			passed <- struct{}{}
		case <-s.t.Context().Done():
		}
	}()
	return passed, func() {}, nil
}
