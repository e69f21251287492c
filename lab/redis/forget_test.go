package redis

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// forget forgets a record as it is shown, and demands that no key of it is left.
func (b *redisBench) forget(t *testing.T, what string, r store.ClaimRequest, want store.RecordState) {
	t.Helper()
	shown, err := b.Inspect(t.Context(), r.ID)
	if err != nil || shown.State != want {
		t.Fatalf("%s: inspect shows %+v, %v, want %v", what, shown, err, want)
	}
	seen := store.Resolution{State: want, Fence: shown.Fence, Forget: true}
	for _, state := range []store.RecordState{store.StateLapsed, store.StateCompleted, store.StateUnreadable} {
		other := seen
		if other.State = state; state != want && !(state.WasCompleted() && want.WasCompleted()) {
			labtest.Want(t, what+": forget as "+state.String(), b.Resolve(t.Context(), r.ID, other), store.ErrRecordChanged)
		}
	}
	labtest.Want(t, what+": forget", b.Resolve(t.Context(), r.ID, seen), nil)
	if n := b.client.Exists(t.Context(), labtest.RedisKey(b.prefix, r.ID), redisPayloadKey(b.prefix, r.ID)).Val(); n != 0 {
		t.Errorf("%s: %d keys are left", what, n)
	}
	labtest.Want(t, what+": forget again", b.Resolve(t.Context(), r.ID, seen), store.ErrRecordChanged)
}

// A payload that its record outlives is deleted with a record that an operator forgets,
// also where the fence of the record has to be remembered for a moment.
func TestRedisAForgottenResultLeavesNoPayload(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	const fence = 0x06000000000007 // of the golden records: an instant of 2023
	for name, c := range map[string]struct {
		micros  int64
		outlive store.RecordState
	}{
		"after the retention":      {redisEpoch * 1000, store.StateExpired},
		"before the fence is over": {fence - time.Second.Microseconds(), store.StateCompleted},
	} {
		b.clock.micros.Store(c.micros)
		b.forget(t, name+", alone", redisGolden(t, b.client, b.prefix, redisGoldenCompleted, 0), store.StateCompleted)
		b.forget(t, name+", with a horizon", redisGolden(t, b.client, b.prefix, redisGoldenSeparate, 0), c.outlive)
		b.forget(t, name+", resolved", redisGolden(t, b.client, b.prefix, redisGoldenOutlived, 0), c.outlive)
	}
}

// A payload that is not the one of its record makes the record unreadable. It keeps its
// fence, by which it is forgotten.
func TestRedisAResultWithAnotherPayloadIsForgotten(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	b.clock.micros.Store(time.Now().UnixMicro())
	r := redisGolden(t, b.client, b.prefix, redisGoldenSeparate, time.Minute-redisGoldenLonger)
	labtest.Want(t, "damage", b.client.Set(t.Context(), redisPayloadKey(b.prefix, r.ID), "longer", time.Hour).Err(), nil)
	b.forget(t, "a result with another payload", r, store.StateUnreadable)
}

// The fence of what cannot be read follows each write of it: also one that differs only
// behind its first 64 KiB in length, or only in its expiry.
func TestRedisTheFenceOfAnUnreadableRecordFollowsItsWrites(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	r := labtest.NewClaim()
	key := labtest.RedisKey(b.prefix, r.ID)
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
		labtest.Want(t, "put a record", b.client.Do(t.Context(), "set", key, c.text, "pxat", redisEpoch+c.expires).Err(), nil)
		shown, err := b.Inspect(t.Context(), r.ID)
		if err != nil || shown.State != store.StateUnreadable || shown.Fence == 0 || shown.Fence >= 1<<49 || seen[shown.Fence] != "" {
			t.Errorf("%s: inspect shows %+v, %v; the fence is that of %q", c.name, shown, err, seen[shown.Fence])
		}
		seen[shown.Fence] = c.name
	}
}
