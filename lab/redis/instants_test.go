package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// The state of a record changes at an instant: where its lease ends, and where its
// validity does. An attempt whose lease outlives its validity is seen until its lease
// ends.
func TestRedisTheInstantsOfAnAttempt(t *testing.T) {
	t.Parallel()
	const second, us = time.Second, time.Microsecond
	b := newRedisBench(t)
	fence := func(d time.Duration) uint64 { return uint64(redisEpoch+d.Milliseconds())*1000 + 999 }
	running := func(left time.Duration) store.ClaimResult {
		return store.ClaimResult{Outcome: store.InProgress, Remaining: left}
	}
	granted := func(attempt int, at, left time.Duration) store.ClaimResult {
		return store.ClaimResult{Outcome: store.Claimed, Attempt: attempt, Fence: fence(at), Remaining: left}
	}
	lapsed, anew := store.ClaimResult{Outcome: store.Lapsed}, granted(1, time.Hour, 30*second)
	for _, c := range []struct {
		name            string
		lease, validity time.Duration // of the record, whose owner and rivals claim it for 30 seconds
		at              time.Duration // since its claim
		rival, takeover store.ClaimResult
		again           store.ClaimResult // by its owner
		state           store.RecordState
	}{
		{"the clock was set back", 30 * second, time.Hour, -10 * second, running(30 * second), running(30 * second), granted(1, 0, 40*second), store.StateRunning},
		{"the lease ends", 30 * second, time.Hour, 30*second - us, running(us), running(us), granted(1, 0, 30*second-999*us), store.StateRunning},
		{"the lease has ended", 30 * second, time.Hour, 30 * second, lapsed, granted(2, 30*second, 30*second), granted(1, 0, 0), store.StateLapsed},
		{
			"the record ends", 30 * second, time.Hour, time.Hour - us,
			lapsed, granted(2, time.Hour-us, 30*second-999*us), granted(1, 0, 30*second-time.Hour+us), store.StateLapsed,
		},
		{"the record has ended", 30 * second, time.Hour, time.Hour, anew, anew, anew, 0},
		{"a long lease ends", time.Hour, 30 * second, time.Hour - us, running(us), running(us), granted(1, 0, 30*second-999*us), store.StateRunning},
		{"a long lease has ended", time.Hour, 30 * second, time.Hour, anew, anew, anew, 0},
	} {
		b.at(c.at)
		put := func() store.ClaimRequest {
			record := "21" + redisGoldenWho + redisMicros(c.lease) + redisMicros(c.validity) + "03706179"
			return b.put(t, record, redisSpan)
		}
		for _, claim := range []struct {
			who           string
			own, takeover bool
			want          store.ClaimResult
		}{{"a rival", false, false, c.rival}, {"a takeover", false, true, c.takeover}, {"its owner", true, false, c.again}} {
			r := put()
			if r.Takeover = claim.takeover; !claim.own {
				r.Owner = store.NewOwner()
			}
			if got, err := b.Claim(t.Context(), r); err != nil || fmt.Sprint(got) != fmt.Sprint(claim.want) {
				t.Errorf("%s: a claim by %s: %+v, %v; want %+v", c.name, claim.who, got, err, claim.want)
			}
		}
		r := put()
		shown, err := b.Inspect(t.Context(), r.ID)
		switch {
		case c.state == 0:
			labtest.Want(t, c.name+": inspect", err, store.ErrNotFound)
		case err != nil || shown.State != c.state || shown.Lease != min(c.lease-c.at, c.lease) || shown.Validity != max(c.lease, c.validity)-c.at ||
			shown.Fence != fence(0) || !shown.ClaimedAt.Equal(time.UnixMilli(redisEpoch)):
			t.Errorf("%s: inspect shows %+v, %v", c.name, shown, err)
		}
		changed := store.ErrRecordChanged
		if c.state == store.StateLapsed {
			changed = nil
		}
		labtest.Want(t, c.name+": resolve", b.Resolve(t.Context(), r.ID, store.Resolution{Fence: fence(0), Forget: true}), changed)
	}
}

// Fences grow also within one millisecond, over releases, and by a clock that was set
// back.
func TestRedisFencesOfOneMillisecond(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	const (
		first  = (redisEpoch+5)*1000 + 999
		future = 0x12000000000007 // far ahead of the clock
	)
	now := 5*time.Millisecond + 400*time.Microsecond
	b.at(now)
	claim := func(r *store.ClaimRequest, attempt int, fence uint64) {
		t.Helper()
		r.Owner = store.NewOwner()
		if got := labtest.WantClaim(t, b, *r, store.Claimed); got.Attempt != attempt || got.Fence != fence {
			t.Errorf("claimed as %+v, want fence %d of attempt %d", got, fence, attempt)
		}
	}
	// An attempt with a fence that is not its instant is completed with both.
	complete := func(r store.ClaimRequest, fence uint64, claimed int64) {
		t.Helper()
		labtest.Want(t, "complete", redisComplete(t, b, r, "answer"), nil)
		shown, err := b.Inspect(t.Context(), r.ID)
		if err != nil || shown.Fence != fence || shown.Attempt != 1 || !shown.ClaimedAt.Equal(time.UnixMilli(redisEpoch+claimed)) {
			t.Errorf("completed, inspect shows %+v, %v", shown, err)
		}
	}

	r := b.put(t, "", 0)
	for n := range uint64(3) {
		claim(&r, 1, first+n)
		labtest.Want(t, "release", b.Release(t.Context(), r.ID, r.Owner), nil)
		// What is left goes at the end of the millisecond that has this fence.
		if got, want := b.expires(t, labtest.RedisKey(b.prefix, r.ID)), int64(first+n)/1000+1-redisEpoch; got != want {
			t.Errorf("what a release leaves expires at %d, want %d", got, want)
		}
	}
	claim(&r, 1, first+3)
	complete(r, first+3, 5)

	// The next millisecond has a higher fence, and its release leaves nothing.
	r = b.put(t, "", 0)
	claim(&r, 1, first)
	b.at(now + time.Millisecond)
	labtest.Want(t, "release", b.Release(t.Context(), r.ID, r.Owner), nil)
	if n := b.client.Exists(t.Context(), labtest.RedisKey(b.prefix, r.ID)).Val(); n != 0 {
		t.Error("a release after the millisecond of its claim leaves something")
	}
	claim(&r, 1, first+1000)

	// The clock was set back.
	r = b.put(t, "25"+redisNumber(future), redisSpan)
	claim(&r, 1, future+1)
	complete(r, future+1, 6)
	b.at(31 * time.Second)
	r = b.put(t, "22"+redisGoldenWho+redisGoldenTimes+"00000003"+redisNumber(future)+redisNumber(0)+"00", redisSpan)
	claim(&r, 4, future+1)
}

// A record is never written with an expiry in the past, which would delete it, and its
// durations fit the expiry that it has: one millisecond is the shortest lease, and only
// such a one may get longer.
func TestRedisAShortLeaseIsWritten(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	b := newRedisBench(t)
	for _, c := range []struct {
		name            string
		at              time.Duration // since the millisecond of the claim
		renew           bool          // or else claim again
		lease           time.Duration
		expires         int64 // of the key, in milliseconds
		left, validLeft time.Duration
	}{
		{"renewed at the start of a millisecond", 3 * ms, true, ms, 4, 2 * ms, 2 * ms},
		{"renewed within a millisecond", 3*ms + 400*time.Microsecond, true, ms, 4, ms, ms},
		{"renewed for two", 3 * ms, true, 2 * ms, 4, 2 * ms, 2 * ms},
		{"renewed for a little more than one", 3 * ms, true, ms + time.Microsecond, 4, ms + time.Microsecond, ms + time.Microsecond},
		{"renewed by a clock that was set back", -2 * ms, true, ms, 1, ms, 3 * ms},
		{"claimed again", 3*ms + 400*time.Microsecond, false, ms, 4, ms + 600*time.Microsecond, ms + 600*time.Microsecond},
		{"claimed again for two", 3*ms + 400*time.Microsecond, false, 2 * ms, 4, ms + 600*time.Microsecond, ms + 600*time.Microsecond},
		{"claimed again by a clock that was set back", -2 * ms, false, ms, 1, ms, 3 * ms},
	} {
		b.at(400 * time.Microsecond)
		r := labtest.NewClaim()
		r.Lease, r.Retention, r.Waiting = time.Hour, ms, true
		granted := labtest.WantClaim(t, b, r, store.Claimed)
		b.at(c.at)
		if c.renew {
			statuses, err := b.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: c.lease}})
			if err != nil || statuses[0] != store.Renewed {
				t.Errorf("%s: renew answers %v, %v", c.name, statuses, err)
			}
		} else {
			r.Lease = c.lease
			labtest.WantClaim(t, b, r, store.Claimed)
		}
		if got := b.expires(t, labtest.RedisKey(b.prefix, r.ID)); got != c.expires {
			t.Errorf("%s: the key expires in millisecond %d, want %d", c.name, got, c.expires)
		}
		shown, err := b.Inspect(t.Context(), r.ID)
		if err != nil || shown.Lease != c.left || shown.Validity != c.validLeft || shown.Fence != granted.Fence || !shown.ClaimedAt.Equal(time.UnixMilli(redisEpoch)) {
			t.Errorf("%s: inspect shows %+v, %v; want %v of the lease and %v of the validity", c.name, shown, err, c.left, c.validLeft)
		}
	}
}

// A completed record ends with its key, at the end of a millisecond, and was completed in
// the one from which its retention counts.
func TestRedisTheInstantsOfACompletion(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	const expires, ms = 50, time.Millisecond
	completed := func(retention time.Duration) string {
		return "23" + redisGoldenWho + "06000000000007" + redisNumber(uint64(retention.Microseconds()))[2:] + "00000003" + "03706179" + "00ff41"
	}
	for _, c := range []struct {
		retention time.Duration
		span      time.Duration // from the completion to the expiry of the key
	}{
		{time.Hour, time.Hour - ms},
		{ms, ms},
		{ms + time.Microsecond, ms},
		{2 * ms, ms},
		{2*ms + time.Microsecond, 2 * ms},
		{3 * ms, 2 * ms},
	} {
		r := b.put(t, completed(c.retention), expires)
		for _, left := range []time.Duration{10 * ms, ms, time.Microsecond, 0, -ms} {
			b.at((expires+1)*ms - left)
			left = max(left, 0)
			shown, err := b.Inspect(t.Context(), r.ID)
			if err != nil || shown.State != store.StateCompleted || shown.Lease != 0 || shown.Validity != left ||
				!shown.CompletedAt.Equal(time.UnixMilli(redisEpoch+expires-c.span.Milliseconds())) ||
				shown.Fence != 0x06000000000007 || !shown.ClaimedAt.Equal(time.UnixMilli((0x06000000000007-999)/1000)) || shown.Label != "pay" {
				t.Errorf("a retention of %v, %v before its end: inspect shows %+v, %v", c.retention, left, shown, err)
			}
			if got := labtest.WantClaim(t, b, labtest.Rival(r), store.Completed); string(got.Payload) != "\x00\xffA" {
				t.Errorf("a retention of %v, %v before its end: claimed as %+v", c.retention, left, got)
			}
		}
	}

	r := b.put(t, redisGoldenOtherVersion, expires)
	b.at((expires+1)*ms - 7*time.Microsecond)
	if shown, err := b.Inspect(t.Context(), r.ID); err != nil || shown.State != store.StateUnreadable || shown.Validity != 7*time.Microsecond {
		t.Errorf("what cannot be read is shown as %+v, %v", shown, err)
	}

	r = b.put(t, completed(time.Hour), expires)
	labtest.Want(t, "persist", b.client.Persist(t.Context(), labtest.RedisKey(b.prefix, r.ID)).Err(), nil)
	shown, err := b.Inspect(t.Context(), r.ID)
	if err != nil || shown.Validity != store.MaxDuration || !shown.CompletedAt.IsZero() {
		t.Errorf("what lasts for ever is shown as %+v, %v", shown, err)
	}
	labtest.WantClaim(t, b, r, store.Completed)
}

// A payload that its record outlives ends at the end of a millisecond, which follows from
// the expiry of the record: by then the payload may still have its key.
func TestRedisTheInstantsOfAPayload(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	const ms = time.Millisecond
	for _, c := range []struct {
		retention, horizon time.Duration
		expires            int64         // of the record that is completed in the first millisecond
		end                time.Duration // of the payload
	}{
		{10 * ms, 20 * ms, 29, 10 * ms},
		{10*ms + time.Microsecond, 20 * ms, 30, 11 * ms},
		{ms, 20 * ms, 20, 2 * ms},
		{ms, ms, 1, 2 * ms},
		{time.Hour, time.Hour, 2*3_600_000 - 1, time.Hour},
	} {
		record := "23" + redisGoldenWho + "06000000000007" + redisNumber(uint64(c.retention.Microseconds()))[2:] + "00000003" + "80" + redisNumber(uint64(c.horizon.Microseconds()))[2:]
		r := b.put(t, record, c.expires)
		labtest.Want(t, "put a payload", b.client.Set(t.Context(), redisPayloadKey(b.prefix, r.ID), "\x00\xffA", time.Hour).Err(), nil)
		for at, want := range map[time.Duration]store.Outcome{0: store.Completed, c.end - time.Microsecond: store.Completed, c.end: store.Expired, c.end + time.Second: store.Expired} {
			b.at(at)
			got := labtest.WantClaim(t, b, labtest.Rival(r), want)
			if (string(got.Payload) == "\x00\xffA") != (want == store.Completed) {
				t.Errorf("a retention of %v, %v after the completion: %+v", c.retention, at, got)
			}
			state := store.StateExpired
			if want == store.Completed {
				state = store.StateCompleted
			}
			if shown, err := b.Inspect(t.Context(), r.ID); err != nil || shown.State != state || !shown.CompletedAt.Equal(time.UnixMilli(redisEpoch)) || (shown.Size == 3) != (want == store.Completed) {
				t.Errorf("a retention of %v, %v after the completion: inspect shows %+v, %v", c.retention, at, shown, err)
			}
		}
	}
}
