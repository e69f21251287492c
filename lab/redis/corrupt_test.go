package redis

import (
	"bytes"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// Every byte of a record that is cut off is noticed, by the native way and by the
// scripts, and so is a policy that has another length than it says: a completion that
// knows its claim looks at the policy, too.
func TestRedisAShorterRecordIsCorrupt(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	for _, record := range []string{redisGoldenClaimed, redisGoldenWatched, redisGoldenCompleted, redisGoldenSeparate, redisGoldenLater, redisGoldenResolved, redisGoldenOutlived, redisGoldenForgotten, redisGoldenOtherVersion} {
		waiting := b.put(t, record, redisSpan)
		r := waiting
		r.Waiting = false
		key := labtest.RedisKey(b.prefix, r.ID)
		whole := redisHex(t, record)
		broken := [][]byte{append(bytes.Clone(whole), 0)}
		for n := range whole {
			broken = append(broken, whole[:n])
		}
		switch record {
		case redisGoldenOtherVersion:
			broken = append(broken, whole)
		case redisGoldenClaimed:
			for _, policy := range []string{"02706179", "04706179", "037061", "0370617979", "43706179" + "00", "83706179", "83706179" + "000000d693a4"} {
				broken = append(broken, redisHex(t, "21"+redisGoldenWho+redisGoldenTimes+policy))
			}
		}
		for _, text := range broken {
			labtest.Want(t, "put a record", b.client.Set(t.Context(), key, text, time.Minute).Err(), nil)
			_, err := b.Claim(t.Context(), r)
			labtest.Want(t, "claim", err, store.ErrCorrupt)
			_, err = b.Claim(t.Context(), waiting)
			labtest.Want(t, "claim of a waiter", err, store.ErrCorrupt)
			labtest.Want(t, "release", b.Release(t.Context(), r.ID, r.Owner), store.ErrCorrupt)
			labtest.Want(t, "complete", b.Complete(t.Context(), redisCompletion(r, store.ClaimResult{Attempt: 1}, "answer")), store.ErrCorrupt)
			if after, err := b.client.Get(t.Context(), key).Bytes(); err != nil || !bytes.Equal(after, text) {
				t.Fatalf("the record was changed to %x, %v", after, err)
			}
			shown, err := b.Inspect(t.Context(), r.ID)
			if err != nil || shown.State != store.StateUnreadable || shown.Size != len(text) {
				t.Fatalf("inspect of %x: %+v, %v", text, shown, err)
			}
		}
	}
}

// An operator sees and forgets each record that is unreadable, or whose payload has a key
// of its own, and no key of it is left: also where its fence has to be remembered for a
// moment.
func TestRedisForgottenRecordsLeaveNothing(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	const (
		payload    = "\x00\xffA"
		before     = (0x06000000000007-redisEpoch*1000)*time.Microsecond - time.Second // before the fence of the record is over
		unreadable = 0
	)
	for _, c := range []struct {
		name, record, payload string
		expires               int64
		at                    time.Duration
		claim                 store.Outcome // of a rival
		state                 store.RecordState
	}{
		{"alone", redisGoldenCompleted, "", redisSpan, 0, store.Completed, store.StateCompleted},
		{"with a horizon", redisGoldenSeparate, payload, redisRemembered, 0, store.Completed, store.StateCompleted},
		{"with a horizon, after its retention", redisGoldenSeparate, payload, redisRemembered, time.Hour, store.Expired, store.StateExpired},
		{"with a horizon, before its fence is over", redisGoldenSeparate, payload, redisRemembered, before, store.Completed, store.StateCompleted},
		{"resolved", redisGoldenOutlived, payload, redisSpan, time.Minute, store.Expired, store.StateExpired},
		{"without its payload", redisGoldenSeparate, "", redisRemembered, 0, store.Expired, store.StateExpired},
		{"with another payload", redisGoldenSeparate, "longer", redisRemembered, 0, unreadable, store.StateUnreadable},
		{"an attempt whose key never expires", redisGoldenClaimed, "", 0, 0, unreadable, store.StateUnreadable},
		{"of a later release", redisGoldenOtherVersion, "", redisSpan, 0, unreadable, store.StateUnreadable},
	} {
		b.at(c.at)
		r := b.put(t, c.record, c.expires)
		keys := []string{labtest.RedisKey(b.prefix, r.ID), redisPayloadKey(b.prefix, r.ID)}
		if c.expires == 0 {
			labtest.Want(t, "persist", b.client.Persist(t.Context(), keys[0]).Err(), nil)
		}
		if c.payload != "" {
			labtest.Want(t, "put a payload", b.client.Set(t.Context(), keys[1], c.payload, time.Hour).Err(), nil)
		}
		got, err := b.Claim(t.Context(), labtest.Rival(r))
		if got.Outcome != c.claim || (err != nil) != (c.claim == unreadable) || (string(got.Payload) == payload) != (c.claim == store.Completed) {
			t.Errorf("%s: claimed as %+v, %v", c.name, got, err)
		}
		shown, err := b.Inspect(t.Context(), r.ID)
		if err != nil || shown.State != c.state || (string(shown.Payload) == payload) != (c.claim == store.Completed) {
			t.Errorf("%s: inspect shows %+v, %v", c.name, shown, err)
		}
		labtest.Want(t, c.name+": forget", b.Resolve(t.Context(), r.ID, store.Resolution{State: c.state, Fence: shown.Fence, Forget: true}), nil)
		if n := b.client.Exists(t.Context(), keys...).Val(); n != 0 {
			t.Errorf("%s: %d keys are left", c.name, n)
		}
	}
}

// The fence of what cannot be read follows each write of it: also one that differs only
// behind its first 64 KiB in length, or only in its expiry.
func TestRedisTheFenceOfAnUnreadableRecordFollowsItsWrites(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	r := labtest.NewClaim()
	text := make([]byte, 70_000)
	seen := map[uint64]string{}
	for _, c := range []struct {
		name    string
		text    []byte
		expires int64
	}{
		{"short", []byte("of a later release"), 1},
		{"another", []byte("of a later Release"), 1},
		{"empty", nil, 1},
		{"later", []byte("of a later release"), 2},
		{"long", text, 1},
		{"longer by a byte", append(text, 0), 1},
	} {
		key := labtest.RedisKey(b.prefix, r.ID)
		labtest.Want(t, "put a record", b.client.Do(t.Context(), "set", key, c.text, "pxat", redisEpoch+c.expires).Err(), nil)
		shown, err := b.Inspect(t.Context(), r.ID)
		if err != nil || shown.State != store.StateUnreadable || shown.Fence == 0 || shown.Fence >= 1<<49 || seen[shown.Fence] != "" {
			t.Errorf("%s: inspect shows %+v, %v; the fence is that of %q", c.name, shown, err, seen[shown.Fence])
		}
		seen[shown.Fence] = c.name
	}
}
