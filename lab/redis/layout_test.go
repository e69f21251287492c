package redis

import (
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// Records as docs/engineering/adr/0011-redis-records.md describes them. Another release
// of the program has to read them.
const (
	redisGoldenOwner       = "00112233445566778899aabbccddeeff"
	redisGoldenFingerprint = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	redisGoldenWho         = redisGoldenOwner + redisGoldenFingerprint
	redisGoldenHour        = "00000000d693a400"
	redisGoldenTimes       = "0000000001c9c380" + redisGoldenHour // 30 s and 1 h
	redisGoldenHorizon     = "000001ad274800"                     // 2 h
	redisGoldenCareful     = "c3" + "706179" + redisGoldenHorizon // the policy of an at-most-once claim with a horizon
	redisGoldenDone        = "06000000000007" + "000000d693a400" + "00000003"

	redisGoldenClaimed      = "21" + redisGoldenWho + redisGoldenTimes + "03706179"
	redisGoldenRemembered   = "21" + redisGoldenWho + redisGoldenTimes + redisGoldenCareful
	redisGoldenWatched      = "22" + redisGoldenWho + redisGoldenTimes + "00000003" + "0006000000000007" + "0000000000000000" + "00"
	redisGoldenCompleted    = "23" + redisGoldenWho + redisGoldenDone + "03706179" + "00ff41"
	redisGoldenSeparate     = "23" + redisGoldenWho + redisGoldenDone + redisGoldenCareful
	redisGoldenLater        = "24" + redisGoldenWho + redisGoldenDone + "00" + "00000003" + "000000000400" + "00ff41"
	redisGoldenForgotten    = "25" + "0006000000000007"
	redisGoldenResolved     = "26" + redisGoldenWho + redisGoldenDone + "00" + "00000003" + "000000000400" + redisGoldenHour + "0000000000000000" + "00ff41"
	redisGoldenOutlived     = "26" + redisGoldenWho + redisGoldenDone + "00" + "00000003" + "000000000400" + "0000000001c9c380" + "00000000d4c9e080"
	redisGoldenOtherVersion = "33" + redisGoldenWho + redisGoldenDone + "03706179" + "00ff41" // that a later release may write
)

// The keys of golden claims expire so many milliseconds after them: one of it is that in
// which a key expires.
const (
	redisSpan       = 3_600_000 - 1
	redisRemembered = 3*3_600_000 - 1 // with the horizon
)

// Each script writes the golden form of a record, and how long its key lasts; or a
// command is refused to it, and then it reports no success and changes no record. A hint
// to watchers is no such write. Records that a client writes are pinned in
// store/redis/internal/record, and the suite reads them all.
func TestRedisScriptsWriteGoldenRecordsOrFail(t *testing.T) {
	t.Parallel()
	const (
		fence     = "0e9326dd03c3e7" // of a claim at the epoch
		nobody    = "00000000000000000000000000000000" + redisGoldenFingerprint
		first     = "00000001" + "03bb2cc3d800" // attempt and millisecond
		answer    = "00ff41"
		ten       = "0000000000989680" // seconds
		forty     = "0000000002625a00"
		zero      = "0000000000000000"
		keptHour  = "000000d693a400" + "00000003"
		byServer  = -1 // a key lasts by the clock of the server
		gone      = -1
		minute    = 60_000
		lasts     = redisSpan
		described = "3f" + "03" + "05" + "706179" + "474554202f"
	)
	b := newRedisBench(t)
	claims := func(r store.ClaimRequest, want store.Outcome) error {
		got, err := b.Claim(t.Context(), r)
		if err == nil && got.Outcome != want {
			t.Errorf("claimed as %v, want %v", got.Outcome, want)
		}
		return err
	}
	claim := func(r store.ClaimRequest) error { return claims(r, store.Claimed) }
	rival := func(r store.ClaimRequest) error { r.Owner[0] = 0xff; return claim(r) }
	waits := func(r store.ClaimRequest) error { return claims(labtest.Rival(r), store.InProgress) }
	release := func(r store.ClaimRequest) error { return b.Release(t.Context(), r.ID, r.Owner) }
	complete := func(r store.ClaimRequest) error { return redisComplete(t, b, r, "\x00\xffA") }
	resolve := func(retention time.Duration) func(store.ClaimRequest) error {
		return func(r store.ClaimRequest) error {
			return b.Resolve(t.Context(), r.ID, store.Resolution{Fence: redisFence, Payload: []byte("\x00\xffA"), Retention: retention})
		}
	}
	resolved := func(policy string, asked, kept time.Duration) string {
		return "26" + nobody + fence + keptHour + policy + first + redisMicros(asked) + redisMicros(kept)
	}
	for _, c := range []struct {
		name    string
		before  string
		at      time.Duration
		do      func(store.ClaimRequest) error
		want    string
		lasts   int64 // the millisecond in which its key expires
		payload int64 // and that of its payload
	}{
		{"claim", "", 0, claim, redisGoldenClaimed, lasts, 0},
		{"claim with a description", "", 0, func(r store.ClaimRequest) error {
			r.Description = "GET /"
			return claim(r)
		}, "21" + redisGoldenWho + redisGoldenTimes + described, lasts, 0},
		{"claim with a horizon", "", 0, func(r store.ClaimRequest) error {
			r.AtMostOnce, r.Horizon = true, 2*time.Hour
			return claim(r)
		}, redisGoldenRemembered, redisRemembered, 0},
		{"claim again", redisGoldenClaimed, 10 * time.Second, claim, "22" + redisGoldenWho + forty + redisGoldenHour + "00000001" + "00" + fence + ten + "03706179", lasts + 10_000, 0},
		{"take over", redisGoldenClaimed, time.Minute, rival, "22" + "ff" + redisGoldenWho[2:] + redisGoldenTimes + "00000002" + "00" + "0e9326e0974ae7" + zero + "03706179", lasts + minute, 0},
		{"wait", redisGoldenClaimed, 10 * time.Second, waits, "22" + redisGoldenWho + redisGoldenTimes + "00000001" + "00" + fence + zero + "03706179", lasts, 0},
		{"renew", redisGoldenClaimed, 10 * time.Second, func(r store.ClaimRequest) error {
			_, err := b.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
			return err
		}, "21" + redisGoldenWho + forty + redisGoldenHour + "03706179", lasts, 0},
		{"unknown", redisGoldenClaimed, 10 * time.Second, func(r store.ClaimRequest) error {
			return b.Unknown(t.Context(), store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "bank"})
		}, "27" + redisGoldenWho + ten + redisGoldenHour + "00000001" + "00" + fence + ten + "43706179" + "62616e6b", lasts + 10_000, 0},
		{"release at once", redisGoldenClaimed, 0, release, "25" + "00" + fence, 1, 0},
		{"release", redisGoldenClaimed, time.Second, release, "", gone, 0},
		{"release what is watched", redisGoldenWatched, time.Second, release, "", gone, 0},
		{"forget", redisGoldenClaimed, time.Minute, func(r store.ClaimRequest) error {
			return b.Resolve(t.Context(), r.ID, store.Resolution{Fence: redisFence, Forget: true})
		}, "", gone, 0},

		{"complete", redisGoldenClaimed, time.Minute, complete, "23" + redisGoldenWho + fence + keptHour + "03706179" + answer, byServer, 0},
		{"complete as claimed", redisGoldenClaimed, time.Minute, func(r store.ClaimRequest) error {
			return b.Complete(t.Context(), redisCompletion(r, store.ClaimResult{Attempt: 1, Fence: redisFence}, "\x00\xffA"))
		}, "23" + redisGoldenWho + fence + keptHour + "03706179" + answer, byServer, 0},
		{"complete a later attempt", redisGoldenWatched, time.Minute, complete, "24" + redisGoldenWho + redisGoldenDone + "00" + "00000003" + "03bb2cc3d800" + answer, byServer, 0},
		{"complete with a horizon", redisGoldenRemembered, time.Minute, func(r store.ClaimRequest) error {
			r.Horizon = 2 * time.Hour
			return complete(r)
		}, "23" + redisGoldenWho + fence + keptHour + redisGoldenCareful, byServer, byServer},
		{"complete with a horizon that its claim had not", redisGoldenClaimed, time.Minute, func(r store.ClaimRequest) error {
			r.Horizon = 2 * time.Hour
			return complete(r)
		}, "23" + redisGoldenWho + fence + keptHour + "83706179" + redisGoldenHorizon, byServer, byServer},
		{"complete without the horizon of its claim", redisGoldenRemembered, time.Minute, complete, "23" + redisGoldenWho + fence + keptHour + "43706179" + answer, byServer, 0},
		{"complete again", redisGoldenCompleted, time.Minute, complete, redisGoldenCompleted, lasts, 0},

		{"resolve", redisGoldenClaimed, time.Minute, resolve(time.Hour), resolved("03706179", time.Hour, 0) + answer, lasts + minute, 0},
		{"resolve for less than the record lasts", redisGoldenClaimed, time.Minute, resolve(30 * time.Second), resolved("03706179", 30*time.Second, 59*time.Minute-30*time.Second), lasts, 90_000 - 1},
		{"resolve with the horizon", redisGoldenRemembered, time.Minute, resolve(time.Hour), resolved(redisGoldenCareful, time.Hour, 2*time.Hour), redisRemembered + minute, lasts + minute},
		{
			"resolve for less than the record lasts that had a horizon", redisGoldenRemembered, time.Minute, resolve(30 * time.Second),
			resolved(redisGoldenCareful, 30*time.Second, 3*time.Hour-90*time.Second), redisRemembered, 90_000 - 1,
		},
	} {
		b.at(c.at)
		put := func() (r store.ClaimRequest, key string) {
			expires := int64(redisSpan)
			if c.before == redisGoldenRemembered {
				expires = redisRemembered
			}
			r = b.put(t, c.before, expires)
			return r, labtest.RedisKey(b.prefix, r.ID)
		}
		r, key := put()
		labtest.Want(t, c.name, c.do(r), nil)
		if got := hex.EncodeToString([]byte(b.client.Get(t.Context(), key).Val())); got != c.want {
			t.Errorf("%s writes\n%s, want\n%s", c.name, got, c.want)
		}
		if got := b.expires(t, key); c.lasts >= 0 && got != c.lasts {
			t.Errorf("%s: the key expires in millisecond %d, want %d", c.name, got, c.lasts)
		}
		payload := redisPayloadKey(b.prefix, r.ID)
		if text := b.client.Get(t.Context(), payload).Val(); (text == "\x00\xffA") != (c.payload != 0) || c.payload > 0 && b.expires(t, payload) != c.payload {
			t.Errorf("%s leaves the payload %q, which expires in millisecond %d, want %d", c.name, text, b.expires(t, payload), c.payload)
		}

		writes := "SET"
		if c.want == "" {
			writes = "DEL"
		}
		for _, refused := range []string{"GET", "PEXPIRETIME", "TIME", "SET", "DEL", "SPUBLISH"} {
			r, key := put()
			before := b.client.Get(t.Context(), key).Val()
			b.refuse(refused)
			err := c.do(r)
			b.refuse("")
			changed := b.client.Get(t.Context(), key).Val() != before
			switch {
			case err == nil && (refused == "GET" || refused == writes) && c.name != "wait": // which is a hint, too
				t.Errorf("%s without %s: no error", c.name, refused)
			case errors.Is(err, store.ErrCorrupt):
				t.Errorf("%s without %s: %v", c.name, refused, err)
			case err != nil && changed:
				t.Errorf("%s without %s: %v, and the record was changed", c.name, refused, err)
			case err != nil && refused != writes && (refused == "SPUBLISH" || refused == "SET" || refused == "DEL"):
				t.Errorf("%s without %s: %v", c.name, refused, err)
			}
		}
	}
}

// A record that is unreadable for now is not taken for a broken one, which may be
// forgotten, and who cannot read the expiry of a record shows none of it.
func TestRedisARefusedReadShowsNothing(t *testing.T) {
	t.Parallel()
	b := newRedisBench(t)
	r := b.put(t, redisGoldenCompleted, redisSpan)
	b.refuse("GET")
	labtest.Want(t, "forget", b.Resolve(t.Context(), r.ID, store.Resolution{State: store.StateUnreadable, Fence: 1, Forget: true}), store.ErrUnknown)
	b.refuse("PEXPIRETIME")
	list := labtest.NewClaim()
	labtest.Want(t, "put a list", b.client.RPush(t.Context(), labtest.RedisKey(b.prefix, list.ID), "x").Err(), nil)
	for _, id := range []store.ID{r.ID, list.ID} {
		if shown, err := b.Inspect(t.Context(), id); err == nil {
			t.Errorf("without the expiry of its key, inspect shows %+v", shown)
		}
	}
	b.refuse("")
	labtest.WantClaim(t, b, r, store.Completed)
}

// redisNumber returns the eight bytes of a number in hexadecimal.
func redisNumber(n uint64) string { return fmt.Sprintf("%016x", n) }

func redisMicros(d time.Duration) string { return redisNumber(uint64(d.Microseconds())) }

func redisHex(tb testing.TB, digits string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(digits)
	labtest.Want(tb, "hexadecimal", err, nil)
	return b
}
