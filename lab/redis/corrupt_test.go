package redis

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// Every byte of a record that is cut off is noticed, by the native way and by the
// scripts.
func TestRedisAShorterRecordIsCorrupt(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	for _, record := range []string{redisGoldenClaimed, redisGoldenWatched, redisGoldenCompleted, redisGoldenSeparate, redisGoldenLater, redisGoldenResolved, redisGoldenOutlived, redisGoldenForgotten, redisGoldenOtherVersion} {
		r := redisGolden(t, client, prefix, record, 0)
		waiting := r
		waiting.Waiting = true
		whole := redisHex(t, record)
		broken := append(redisPrefixes(whole), append(bytes.Clone(whole), 0))
		if record == redisGoldenOtherVersion {
			broken = append(broken, whole)
		}
		for _, b := range broken {
			labtest.Want(t, "put a record", client.Set(t.Context(), labtest.RedisKey(prefix, r.ID), b, time.Minute).Err(), nil)
			_, err := st.Claim(t.Context(), r)
			labtest.Want(t, "claim", err, store.ErrCorrupt)
			_, err = st.Claim(t.Context(), waiting)
			labtest.Want(t, "claim of a waiter", err, store.ErrCorrupt)
			labtest.Want(t, "release", st.Release(t.Context(), r.ID, r.Owner), store.ErrCorrupt)
			labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(r, store.ClaimResult{Attempt: 1}, "answer")), store.ErrCorrupt)
			if after, err := client.Get(t.Context(), labtest.RedisKey(prefix, r.ID)).Bytes(); err != nil || !bytes.Equal(after, b) {
				t.Fatalf("the record was changed to %x, %v", after, err)
			}
			shown, err := st.Inspect(t.Context(), r.ID)
			if err != nil || shown.State != store.StateUnreadable || shown.Size != len(b) || shown.Validity <= 0 {
				t.Fatalf("inspect of %x: %+v, %v", b, shown, err)
			}
		}
	}
}

// A completion that knows its claim looks at the length of the label, too, which has to
// be that of the record: either may be broken.
func TestRedisABrokenLabelIsCorrupt(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	for _, label := range []string{"02706179", "04706179", "037061", "0370617979", "43706179" + "00", "83706179", "83706179" + "000000d693a4"} {
		r := redisGolden(t, client, prefix, strings.TrimSuffix(redisGoldenClaimed, "03706179")+label, 0)
		r.Label = "pay"
		labtest.Want(t, "complete", st.Complete(t.Context(), redisCompletion(r, store.ClaimResult{Attempt: 1}, "answer")), store.ErrCorrupt)
	}
}

// redisGoldenOtherVersion is a record with a version that a later release may write.
const redisGoldenOtherVersion = "33" + redisGoldenWho + "06000000000007" + "000000d693a400" + "00000003" + "03706179" + "00ff41"

// redisPrefixes returns all that is shorter than b.
func redisPrefixes(b []byte) (shorter [][]byte) {
	for n := range b {
		shorter = append(shorter, b[:n])
	}
	return shorter
}
