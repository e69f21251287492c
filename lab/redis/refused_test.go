package redis

import (
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// A script whose write is refused reports no success, and changes no record. A hint to
// watchers is no such write.
func TestRedisARefusedWriteIsNoSuccess(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	fence := uint64(redisEpoch*1000 + 999)
	type claim = store.ClaimRequest
	renew := func(r claim) error {
		statuses, err := b.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: time.Minute}})
		if err == nil && statuses[0] != store.Renewed {
			err = errors.New("not renewed")
		}
		return err
	}
	claimed := func(r claim, want store.Outcome) error {
		got, err := b.Claim(t.Context(), r)
		if err == nil && got.Outcome != want {
			err = errors.New("claimed as " + got.Outcome.String())
		}
		return err
	}
	first := store.ClaimResult{Attempt: 1, Fence: fence}
	for _, c := range []struct {
		name   string
		record string // before
		at     time.Duration
		do     func(r claim) error
		writes string // how: the other commands are refused, too, and it succeeds
	}{
		{"claim", "", 0, func(r claim) error { return claimed(r, store.Claimed) }, "SET"},
		{"claim again", redisGoldenClaimed, time.Second, func(r claim) error { return claimed(r, store.Claimed) }, "SET"},
		{"take over", redisGoldenClaimed, time.Minute, func(r claim) error { return claimed(labtest.Rival(r), store.Claimed) }, "SET"},
		{"renew", redisGoldenClaimed, time.Second, renew, "SET"},
		{"complete", redisGoldenClaimed, time.Second, func(r claim) error { return redisComplete(t, b, r, "answer") }, "SET"},
		{"complete as claimed", redisGoldenClaimed, time.Second, func(r claim) error {
			return b.Complete(t.Context(), redisCompletion(r, first, "answer"))
		}, "SET"},
		{"complete again", redisGoldenCompleted, time.Second, func(r claim) error { return redisComplete(t, b, r, "answer") }, "SET"},
		{"complete watched", redisGoldenWatched, time.Second, func(r claim) error { return redisComplete(t, b, r, "answer") }, "SET"},
		{"release", redisGoldenClaimed, time.Second, func(r claim) error { return b.Release(t.Context(), r.ID, r.Owner) }, "DEL"},
		{"release at once", redisGoldenClaimed, 0, func(r claim) error { return b.Release(t.Context(), r.ID, r.Owner) }, "SET"},
		{"release watched", redisGoldenWatched, time.Second, func(r claim) error { return b.Release(t.Context(), r.ID, r.Owner) }, "DEL"},
		{"resolve", redisGoldenClaimed, time.Minute, func(r claim) error {
			return b.Resolve(t.Context(), r.ID, store.Resolution{Fence: fence, Payload: []byte("x"), Retention: time.Hour})
		}, "SET"},
		{"forget", redisGoldenClaimed, time.Minute, func(r claim) error {
			return b.Resolve(t.Context(), r.ID, store.Resolution{Fence: fence, Forget: true})
		}, "DEL"},
	} {
		put := func() (r claim, key string) {
			r = b.put(t, c.record, redisSpan)
			return r, labtest.RedisKey(b.prefix, r.ID)
		}
		b.at(c.at)
		for _, refused := range []string{"GET", "PEXPIRETIME", "TIME", "SET", "DEL", "SPUBLISH"} {
			r, key := put()
			before := b.client.Get(t.Context(), key).Val()
			b.refuse(refused)
			err := c.do(r)
			b.refuse("")
			changed := b.client.Get(t.Context(), key).Val() != before
			switch {
			case err == nil && (refused == "GET" || refused == c.writes):
				t.Errorf("%s without %s: no error", c.name, refused)
			case errors.Is(err, store.ErrCorrupt):
				t.Errorf("%s without %s: %v", c.name, refused, err)
			case err != nil && changed:
				t.Errorf("%s without %s: %v, and the record was changed", c.name, refused, err)
			case err != nil && refused != c.writes && (refused == "SPUBLISH" || refused == "SET" || refused == "DEL"):
				t.Errorf("%s without %s: %v", c.name, refused, err)
			}
		}
	}

	// A waiter that cannot mark the record has its result.
	b.at(time.Second)
	r := b.put(t, redisGoldenClaimed, redisSpan)
	b.refuse("SET")
	labtest.WantClaim(t, b, labtest.Rival(r), store.InProgress)
	b.refuse("")

	// A record that is unreadable for now is not taken for a broken one, which may be
	// forgotten.
	r = b.put(t, redisGoldenCompleted, redisSpan)
	b.refuse("GET")
	labtest.Want(t, "forget", b.Resolve(t.Context(), r.ID, store.Resolution{State: store.StateUnreadable, Fence: 1, Forget: true}), store.ErrUnknown)
	b.refuse("")
	labtest.WantClaim(t, b, r, store.Completed)

	// Who cannot read the expiry of a record shows none of it.
	r = b.put(t, redisGoldenCompleted, redisSpan)
	list := labtest.NewClaim()
	labtest.Want(t, "put a list", b.client.RPush(t.Context(), labtest.RedisKey(b.prefix, list.ID), "x").Err(), nil)
	b.refuse("PEXPIRETIME")
	for _, id := range []store.ID{r.ID, list.ID} {
		if shown, err := b.Inspect(t.Context(), id); err == nil {
			t.Errorf("without the expiry of its key, inspect shows %+v", shown)
		}
	}
}
