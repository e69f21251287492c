package redis

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// Records as docs/engineering/adr/0011-redis-records.md describes them. Another release
// of the program has to read them.
const (
	redisGoldenOwner       = "00112233445566778899aabbccddeeff"
	redisGoldenFingerprint = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	redisGoldenWho         = redisGoldenOwner + redisGoldenFingerprint
	redisGoldenTimes       = "0000000001c9c380" + "00000000d693a400" // 30 s and 1 h
	redisGoldenClaimed     = "21" + redisGoldenWho + redisGoldenTimes + "03" + "706179"
	redisGoldenCareful     = "21" + redisGoldenWho + redisGoldenTimes + "c3" + "706179" + redisGoldenHorizon
	redisGoldenDescribed   = "21" + redisGoldenWho + redisGoldenTimes + redisGoldenGET
	redisGoldenWatched     = "22" + redisGoldenWho + redisGoldenTimes + "00000003" + "0006000000000007" + "0000000000000000" + "00"
	redisGoldenCompleted   = "23" + redisGoldenWho + "06000000000007" + "000000d693a400" + "00000003" + "03706179" + "00ff41"
	redisGoldenEmpty       = "23" + redisGoldenWho + "06000000000007" + "000000d693a400" + "00000000" + "00"
	redisGoldenSeparate    = "23" + redisGoldenWho + "06000000000007" + "000000d693a400" + "00000003" + "c3706179" + redisGoldenHorizon
	redisGoldenLater       = "24" + redisGoldenWho + "06000000000007" + "000000d693a400" + "00000003" + "00" + "00000003" + "000000000400" + "00ff41"
	redisGoldenForgotten   = "25" + "0006000000000007"
	redisGoldenResolved    = "26" + redisGoldenWho + "06000000000007" + "000000d693a400" + "00000003" + "00" + "00000003" + "000000000400" + "00000000d693a400" + "0000000000000000" + "00ff41"
	redisGoldenOutlived    = "26" + redisGoldenWho + "06000000000007" + "000000d693a400" + "00000003" + "00" + "00000003" + "000000000400" + "0000000001c9c380" + "00000000d4c9e080"
	redisGoldenHorizon     = "000001ad274800"                             // 2 h
	redisGoldenGET         = "3f" + "03" + "05" + "706179" + "474554202f" // the policy with a description
)

// redisGoldenSpan is how long the key of each of them was set to last, in milliseconds,
// except for those with a horizon: the retention, and the millisecond in which it expires
// is one of it. A record with a horizon is as old as another one that is
// redisGoldenLonger older.
const (
	redisGoldenSpan   = 3_600_000 - 1
	redisGoldenLonger = 2 * time.Hour
)

// redisGoldenPolicy is the policy of the records with a horizon.
var redisGoldenPolicy = store.Policy{Label: "pay", AtMostOnce: true, Retention: time.Hour, Horizon: 2 * time.Hour}

// redisGolden puts a record that is as old as this under the key of a claim which it
// returns.
func redisGolden(t *testing.T, client *redis.Client, prefix, record string, age time.Duration) store.ClaimRequest {
	t.Helper()
	r := labtest.NewClaim()
	r.Owner = store.Owner(redisHex(t, redisGoldenOwner))
	r.Fingerprint = store.Fingerprint(redisHex(t, redisGoldenFingerprint))
	left := redisGoldenSpan*time.Millisecond - age
	labtest.Want(t, "put a record", client.Set(t.Context(), labtest.RedisKey(prefix, r.ID), redisHex(t, record), left).Err(), nil)
	if record == redisGoldenSeparate || record == redisGoldenOutlived {
		labtest.Want(t, "put a payload", client.Set(t.Context(), redisPayloadKey(prefix, r.ID), "\x00\xffA", time.Hour).Err(), nil)
	}
	return r
}

func TestRedisReadsGoldenRecords(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		client := labtest.RedisClient(t, flavor.Shared(t).Addr())
		prefix := labtest.RedisPrefix()
		st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
		now, err := client.Time(t.Context()).Result()
		labtest.Want(t, "time", err, nil)
		for _, c := range []struct {
			name, record string
			age          time.Duration
			want         store.Record // its instants and durations to the second
			outcome      store.Outcome
			payload      string
		}{
			{
				"claimed", redisGoldenClaimed, 10 * time.Second,
				store.Record{State: store.StateRunning, Policy: store.Policy{Label: "pay"}, Attempt: 1, ClaimedAt: now.Add(-10 * time.Second), Lease: 20 * time.Second, Validity: time.Hour - 10*time.Second},
				store.InProgress, "",
			},
			{
				"described", redisGoldenDescribed, 10 * time.Second,
				store.Record{State: store.StateRunning, Policy: store.Policy{Label: "pay"}, Description: "GET /", Attempt: 1, ClaimedAt: now.Add(-10 * time.Second), Lease: 20 * time.Second, Validity: time.Hour - 10*time.Second},
				store.InProgress, "",
			},
			{
				"lapsed", redisGoldenClaimed, time.Minute,
				store.Record{State: store.StateLapsed, Policy: store.Policy{Label: "pay"}, Attempt: 1, ClaimedAt: now.Add(-time.Minute), Lease: -30 * time.Second, Validity: time.Hour - time.Minute},
				store.Lapsed, "",
			},
			{
				"watched", redisGoldenWatched, 10 * time.Second,
				store.Record{State: store.StateRunning, Attempt: 3, Fence: 0x06000000000007, ClaimedAt: now.Add(-10 * time.Second), Lease: 20 * time.Second, Validity: time.Hour - 10*time.Second},
				store.InProgress, "",
			},
			{
				"completed", redisGoldenCompleted, time.Minute,
				store.Record{State: store.StateCompleted, Policy: store.Policy{Label: "pay"}, Attempt: 1, Fence: 0x06000000000007, ClaimedAt: time.UnixMicro(0x06000000000007), CompletedAt: now.Add(-time.Minute), Validity: time.Hour - time.Minute, Size: 3},
				store.Completed, "\x00\xffA",
			},
			{
				"empty", redisGoldenEmpty, time.Minute,
				store.Record{State: store.StateCompleted, Attempt: 1, Fence: 0x06000000000007, ClaimedAt: time.UnixMicro(0x06000000000007), CompletedAt: now.Add(-time.Minute), Validity: time.Hour - time.Minute},
				store.Completed, "",
			},
			{
				"with a horizon", redisGoldenCareful, 10*time.Second - redisGoldenLonger,
				store.Record{State: store.StateRunning, Policy: redisGoldenPolicy, Attempt: 1, ClaimedAt: now.Add(-10 * time.Second), Lease: 20 * time.Second, Validity: 3*time.Hour - 10*time.Second},
				store.InProgress, "",
			},
			{
				"lapsed in its horizon", redisGoldenCareful, 0,
				store.Record{State: store.StateLapsed, Policy: redisGoldenPolicy, Attempt: 1, ClaimedAt: now.Add(-redisGoldenLonger), Lease: 30*time.Second - redisGoldenLonger, Validity: time.Hour},
				store.Lapsed, "",
			},
			{
				"completed with a horizon", redisGoldenSeparate, time.Minute - redisGoldenLonger,
				store.Record{State: store.StateCompleted, Policy: redisGoldenPolicy, Attempt: 1, Fence: 0x06000000000007, ClaimedAt: time.UnixMicro(0x06000000000007), CompletedAt: now.Add(-time.Minute), Validity: 3*time.Hour - time.Minute, Size: 3},
				store.Completed, "\x00\xffA",
			},
			{
				"expired, though its payload is there", redisGoldenSeparate, time.Hour - redisGoldenLonger,
				store.Record{State: store.StateExpired, Policy: redisGoldenPolicy, Attempt: 1, Fence: 0x06000000000007, ClaimedAt: time.UnixMicro(0x06000000000007), CompletedAt: now.Add(-time.Hour), Validity: 2 * time.Hour},
				store.Expired, "",
			},
			{
				"completed by a takeover", redisGoldenLater, time.Minute,
				store.Record{State: store.StateCompleted, Attempt: 3, Fence: 0x06000000000007, ClaimedAt: time.UnixMilli(0x400), CompletedAt: now.Add(-time.Minute), Validity: time.Hour - time.Minute, Size: 3},
				store.Completed, "\x00\xffA",
			},
			{
				"resolved for a while", redisGoldenOutlived, 10 * time.Second,
				store.Record{State: store.StateCompleted, Attempt: 3, Fence: 0x06000000000007, ClaimedAt: time.UnixMilli(0x400), CompletedAt: now.Add(-10 * time.Second), Resolved: true, Validity: time.Hour - 10*time.Second, Size: 3},
				store.Completed, "\x00\xffA",
			},
			{
				"resolved until a while ago", redisGoldenOutlived, time.Minute,
				store.Record{State: store.StateExpired, Attempt: 3, Fence: 0x06000000000007, ClaimedAt: time.UnixMilli(0x400), CompletedAt: now.Add(-time.Minute), Resolved: true, Validity: time.Hour - time.Minute},
				store.Expired, "",
			},
			{
				"resolved", redisGoldenResolved, time.Minute,
				store.Record{State: store.StateCompleted, Attempt: 3, Fence: 0x06000000000007, ClaimedAt: time.UnixMilli(0x400), CompletedAt: now.Add(-time.Minute), Resolved: true, Validity: time.Hour - time.Minute, Size: 3},
				store.Completed, "\x00\xffA",
			},
		} {
			t.Run(c.name, func(t *testing.T) {
				r := redisGolden(t, client, prefix, c.record, c.age)
				got, err := st.Inspect(t.Context(), r.ID)
				labtest.Want(t, "inspect", err, nil)
				c.want.Retention = time.Hour
				if got.Policy != c.want.Policy || got.Description != c.want.Description || got.Fingerprint != r.Fingerprint {
					t.Errorf("inspect shows %+v, want %+v", got, c.want)
				}
				if c.want.Fence == 0 { // it is derived from the claim
					c.want.Fence = uint64(got.ClaimedAt.UnixMicro()) + 999
				}
				if string(got.Payload) != c.payload {
					t.Errorf("inspect shows the payload %q, want %q", got.Payload, c.payload)
				}
				for _, about := range []struct {
					what      string
					got, want time.Duration
				}{
					{"claimed at", got.ClaimedAt.Sub(c.want.ClaimedAt), 0},
					{"completed at", got.CompletedAt.Sub(c.want.CompletedAt), 0},
					{"lease", got.Lease, c.want.Lease},
					{"validity", got.Validity, c.want.Validity},
				} {
					if off := about.got - about.want; off < -5*time.Second || off > 5*time.Second {
						t.Errorf("%s is off by %v", about.what, off)
					}
				}
				if got.State != c.want.State || got.Attempt != c.want.Attempt || got.Fence != c.want.Fence || got.Size != c.want.Size || got.Resolved != c.want.Resolved {
					t.Errorf("inspect shows %+v, want %+v", got, c.want)
				}

				other := r
				other.Fingerprint[31]++
				rival := r
				rival.Owner, rival.Takeover = store.NewOwner(), false
				for range 2 { // by a native claim, and, if a caller waits, by the script
					labtest.WantClaim(t, st, other, store.Mismatch)
					other.Waiting = true
					answer := labtest.WantClaim(t, st, rival, c.outcome)
					if string(answer.Payload) != c.payload || c.outcome == store.Completed && answer.Payload == nil {
						t.Errorf("replayed %q, want %q", answer.Payload, c.payload)
					}
					rival.Waiting = true
				}
				if c.outcome == store.InProgress {
					again := labtest.WantClaim(t, st, r, store.Claimed)
					if again.Attempt != c.want.Attempt || again.Fence != c.want.Fence {
						t.Errorf("its owner claims it again as %+v", again)
					}
				}
			})
		}

		r := redisGolden(t, client, prefix, redisGoldenSeparate, time.Minute-redisGoldenLonger)
		labtest.Want(t, "delete the payload", client.Del(t.Context(), redisPayloadKey(prefix, r.ID)).Err(), nil)
		labtest.WantClaim(t, st, labtest.Rival(r), store.Expired)
		if got, err := st.Inspect(t.Context(), r.ID); err != nil || got.State != store.StateExpired || got.Payload != nil || got.Size != 0 {
			t.Errorf("without its payload: inspect shows %+v, %v", got, err)
		}
		labtest.Want(t, "put a shorter payload", client.Set(t.Context(), redisPayloadKey(prefix, r.ID), "\x00", time.Hour).Err(), nil)
		_, err = st.Claim(t.Context(), labtest.Rival(r))
		labtest.Want(t, "claim with another payload", err, store.ErrCorrupt)
		if got, err := st.Inspect(t.Context(), r.ID); err != nil || got.State != store.StateUnreadable {
			t.Errorf("with another payload: inspect shows %+v, %v", got, err)
		}

		r = redisGolden(t, client, prefix, redisGoldenForgotten, 0)
		if _, err := st.Inspect(t.Context(), r.ID); err == nil {
			t.Error("a forgotten record is shown")
		}
		if got := labtest.WantClaim(t, st, r, store.Claimed); got.Attempt != 1 || got.Fence <= 0x06000000000007 {
			t.Errorf("after a forgotten record: %+v", got)
		}
	})
}

// The store writes the golden form, by the native way and by the scripts.
func TestRedisWritesGoldenRecords(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	describedClaim := func(description string) (store.ClaimRequest, store.ClaimResult) {
		t.Helper()
		r := labtest.NewClaim()
		r.Owner = store.Owner(redisHex(t, redisGoldenOwner))
		r.Fingerprint = store.Fingerprint(redisHex(t, redisGoldenFingerprint))
		r.Lease, r.Label, r.Description = 30*time.Second, "pay", description
		return r, labtest.WantClaim(t, st, r, store.Claimed)
	}
	claim := func() (store.ClaimRequest, store.ClaimResult) { return describedClaim("") }
	wants := func(what string, r store.ClaimRequest, want string) {
		t.Helper()
		b, err := client.Get(t.Context(), labtest.RedisKey(prefix, r.ID)).Bytes()
		labtest.Want(t, "get", err, nil)
		if got := hex.EncodeToString(b); got != want {
			t.Errorf("%s is\n%s, want\n%s", what, got, want)
		}
	}
	fence := func(n uint64, bytes int) string { return redisNumber(n)[2*(8-bytes):] }
	completed := func(kind string, n uint64) string {
		return kind + redisGoldenWho + fence(n, 7) + "000000d693a400" + "00000003" + "03706179"
	}

	r, granted := claim()
	wants("a claim", r, redisGoldenClaimed)
	labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(r, granted, "\x00\xffA")), nil)
	wants("its completion", r, completed("23", granted.Fence)+"00ff41")

	r, granted = claim()
	labtest.Want(t, "complete", redisComplete(t, st, r, "\x00\xffA"), nil)
	wants("a completion that does not know its claim", r, completed("23", granted.Fence)+"00ff41")

	r, granted = claim()
	redisWaits(t, st, r)
	wants("a watched claim", r, "22"+redisGoldenWho+redisGoldenTimes+"00000001"+fence(granted.Fence, 8)+redisNumber(0)+"03706179")
	labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(r, granted, "\x00\xffA")), nil)
	wants("its completion", r, completed("23", granted.Fence)+"00ff41")

	for known, what := range map[bool]string{true: "a described completion", false: "one that does not know its claim"} {
		r, granted = describedClaim("GET /")
		wants("a described claim", r, redisGoldenDescribed)
		done := redisCompletion(r, granted, "\x00\xffA")
		if !known {
			done.Description, done.Attempt = "", 0
		}
		labtest.Want(t, "complete", st.Complete(t.Context(), done), nil)
		wants(what, r, strings.Replace(completed("23", granted.Fence), "03706179", redisGoldenGET, 1)+"00ff41")
	}

	r = redisGolden(t, client, prefix, redisGoldenClaimed, time.Minute)
	first, err := st.Inspect(t.Context(), r.ID)
	labtest.Want(t, "inspect", err, nil)
	second := r
	second.Owner, second.Lease, second.Label = store.NewOwner(), 30*time.Second, "pay"
	granted = labtest.WantClaim(t, st, second, store.Claimed)
	if granted.Attempt != 2 || granted.Fence <= first.Fence {
		t.Errorf("the takeover of fence %d is %+v", first.Fence, granted)
	}
	who := hex.EncodeToString(second.Owner[:]) + redisGoldenFingerprint
	wants("a takeover", second, "22"+who+redisGoldenTimes+"00000002"+fence(granted.Fence, 8)+redisNumber(0)+"03706179")
	labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(second, granted, "\x00\xffA")), nil)
	claimed := redisNumber((granted.Fence - 999) / 1000)[4:]
	wants("its completion", second, strings.Replace(completed("24", granted.Fence), redisGoldenWho, who, 1)+"00000002"+claimed+"00ff41")

	r = redisGolden(t, client, prefix, redisGoldenClaimed, time.Minute)
	lapsed, err := st.Inspect(t.Context(), r.ID)
	labtest.Want(t, "inspect", err, nil)
	labtest.Want(t, "resolve", st.Resolve(t.Context(), r.ID, store.Resolution{Fence: lapsed.Fence, Payload: []byte("\x00\xffA"), Retention: time.Hour}), nil)
	claimed = redisNumber(uint64(lapsed.ClaimedAt.UnixMilli()))[4:]
	wants("a resolution", r, strings.Replace(completed("26", lapsed.Fence), redisGoldenOwner, strings.Repeat("00", 16), 1)+"00000001"+claimed+"00000000d693a400"+redisNumber(0)+"00ff41")
}

// A payload that its record outlives has a separate key, which lasts as long as it is
// replayed.
func TestRedisWritesGoldenRecordsWithAHorizon(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	claim := func() (store.ClaimRequest, store.ClaimResult) {
		t.Helper()
		r := labtest.NewClaim()
		r.Owner = store.Owner(redisHex(t, redisGoldenOwner))
		r.Fingerprint = store.Fingerprint(redisHex(t, redisGoldenFingerprint))
		r.Lease, r.Policy = 30*time.Second, redisGoldenPolicy
		return r, labtest.WantClaim(t, st, r, store.Claimed)
	}
	wants := func(what string, r store.ClaimRequest, record string, lasts, payloadLasts time.Duration) {
		t.Helper()
		for _, c := range []struct {
			key, want string
			lasts     time.Duration
		}{
			{labtest.RedisKey(prefix, r.ID), string(redisHex(t, record)), lasts},
			{redisPayloadKey(prefix, r.ID), "\x00\xffA", payloadLasts},
		} {
			got, err := client.Get(t.Context(), c.key).Result()
			if c.lasts == 0 {
				labtest.Want(t, what+": get what should not be there", err, redis.Nil)
				continue
			}
			if err != nil || got != c.want {
				t.Errorf("%s is\n%x, %v; want\n%x", what, got, err, c.want)
			}
			if left := client.PTTL(t.Context(), c.key).Val(); left > c.lasts || left < c.lasts-10*time.Second {
				t.Errorf("%s: a key lasts %v, want %v", what, left, c.lasts)
			}
		}
	}
	golden := func(record string, fence uint64) string {
		return strings.Replace(record, "06000000000007", redisNumber(fence)[2:], 1)
	}

	r, granted := claim()
	wants("a claim", r, redisGoldenCareful, 3*time.Hour, 0)
	labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(r, granted, "\x00\xffA")), nil)
	wants("its completion", r, golden(redisGoldenSeparate, granted.Fence), 3*time.Hour, time.Hour)
	labtest.Want(t, "complete again", st.Complete(t.Context(), redisCompletion(r, granted, "another")), nil)
	wants("its repetition", r, golden(redisGoldenSeparate, granted.Fence), 3*time.Hour, time.Hour)

	r, granted = claim()
	redisWaits(t, st, r)
	labtest.Want(t, "complete", redisComplete(t, st, r, "\x00\xffA"), nil)
	wants("a completion that does not know its claim", r, golden(redisGoldenSeparate, granted.Fence), 3*time.Hour, time.Hour)

	r, granted = claim()
	brief := redisCompletion(r, granted, "\x00\xffA")
	brief.Horizon = 0
	labtest.Want(t, "complete", st.Complete(t.Context(), brief), nil)
	wants("a completion without a horizon", r, strings.Replace(golden(redisGoldenSeparate, granted.Fence), "c3706179"+redisGoldenHorizon, "4370617900ff41", 1), time.Hour, 0)

	r = labtest.NewClaim()
	r.Lease, r.Label = 30*time.Second, "pay"
	granted = labtest.WantClaim(t, st, r, store.Claimed)
	longer := redisCompletion(r, granted, "\x00\xffA")
	longer.Horizon = 2 * time.Hour
	labtest.Want(t, "complete", st.Complete(t.Context(), longer), nil)
	who := hex.EncodeToString(r.Owner[:]) + hex.EncodeToString(r.Fingerprint[:])
	record := strings.Replace(golden(redisGoldenSeparate, granted.Fence), "c3706179", "83706179", 1)
	wants("a completion with a horizon that its claim had not", r, strings.Replace(record, redisGoldenWho, who, 1), 3*time.Hour, time.Hour)

	for _, c := range []struct {
		name                  string
		record                string
		age                   time.Duration
		retention             time.Duration
		lasts, kept           time.Duration // of the record, and how much longer than its payload
		retentionAsked, label string
	}{
		{"which ends before the record", redisGoldenClaimed, time.Minute, 30 * time.Second, 59 * time.Minute, 59*time.Minute - 30*time.Second, "0000000001c9c380", "03706179"},
		{"with the horizon", redisGoldenCareful, time.Minute - redisGoldenLonger, time.Hour, 3 * time.Hour, 2 * time.Hour, "00000000d693a400", "c3706179" + redisGoldenHorizon},
		{"which ends before the record that had a horizon", redisGoldenCareful, time.Minute - redisGoldenLonger, 30 * time.Second, 3*time.Hour - time.Minute, 3*time.Hour - time.Minute - 30*time.Second, "0000000001c9c380", "c3706179" + redisGoldenHorizon},
	} {
		r = redisGolden(t, client, prefix, c.record, c.age)
		lapsed, err := st.Inspect(t.Context(), r.ID)
		labtest.Want(t, "inspect", err, nil)
		labtest.Want(t, "resolve", st.Resolve(t.Context(), r.ID, store.Resolution{Fence: lapsed.Fence, Payload: []byte("\x00\xffA"), Retention: c.retention}), nil)
		b, err := client.Get(t.Context(), labtest.RedisKey(prefix, r.ID)).Bytes()
		labtest.Want(t, "get", err, nil)
		got := hex.EncodeToString(b)
		resolved := "26" + strings.Repeat("00", 16) + redisGoldenFingerprint + redisNumber(lapsed.Fence)[2:] + "000000d693a400" + "00000003" + c.label +
			"00000001" + redisNumber(uint64(lapsed.ClaimedAt.UnixMilli()))[4:] + c.retentionAsked
		kept := binary.BigEndian.Uint64(b[len(b)-8:])
		if off := time.Duration(kept)*time.Microsecond - c.kept; !strings.HasPrefix(got, resolved) || len(got) != len(resolved)+16 || off < -10*time.Second || off > time.Millisecond {
			t.Errorf("a resolution %s is\n%s, want\n%s and %v", c.name, got, resolved, c.kept)
		}
		wants("a resolution "+c.name, r, got, c.lasts, c.retention)
		shown, err := st.Inspect(t.Context(), r.ID)
		labtest.Want(t, "inspect", err, nil)
		if string(shown.Payload) != "\x00\xffA" || shown.Policy != lapsed.Policy || !shown.Resolved {
			t.Errorf("a resolution %s is shown as %+v", c.name, shown)
		}
	}
}

// redisNumber returns the eight bytes of a number in hexadecimal.
func redisNumber(n uint64) string {
	var b [8]byte
	for i := range b {
		b[i] = byte(n >> (8 * (7 - i)))
	}
	return hex.EncodeToString(b[:])
}

func redisHex(tb testing.TB, digits string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(digits)
	labtest.Want(tb, "hexadecimal", err, nil)
	return b
}
