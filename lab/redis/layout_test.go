package redis

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// A record of version 1, with numbers that end in the far future. Another version of the
// program has to read it.
const (
	redisGoldenOwner       = "00112233445566778899aabbccddeeff"
	redisGoldenFingerprint = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	redisGoldenHead        = "00000003" + "06000000000007" + "0e000000000000" + redisGoldenOwner + redisGoldenFingerprint
	redisGoldenRunning     = "11" + redisGoldenHead + "0d000000000000"
	redisGoldenCompleted   = "12" + redisGoldenHead + "00000003" + "00ff41"
)

func TestRedisReadsRecordsOfVersion1(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	store := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	put := func(record string) reprise.ClaimRequest {
		t.Helper()
		r := redisClaim()
		r.Owner = reprise.Owner(redisHex(t, redisGoldenOwner))
		r.Fingerprint = reprise.Fingerprint(redisHex(t, redisGoldenFingerprint))
		redisWant(t, "put a record", client.Set(t.Context(), redisKey(prefix, r.ID), redisHex(t, record), time.Minute).Err(), nil)
		return r
	}

	running := put(redisGoldenRunning)
	record, err := store.Inspect(t.Context(), running.ID)
	redisWant(t, "inspect", err, nil)
	if record.State != reprise.StateRunning || record.Attempt != 3 || record.Fence != 0x06000000000007 || record.Lease <= 0 || record.Validity <= record.Lease {
		t.Errorf("in progress reads %+v", record)
	}
	if got := redisMustClaim(t, store, running, reprise.Claimed); got.Attempt != 3 || got.Fence != record.Fence {
		t.Errorf("its owner claims it again as %+v", got)
	}

	completed := put(redisGoldenCompleted)
	if got := redisMustClaim(t, store, completed, reprise.Completed); string(got.Payload) != "\x00\xffA" {
		t.Errorf("replayed %q", got.Payload)
	}
	completed.Fingerprint[31]++
	redisMustClaim(t, store, completed, reprise.Mismatch)

	empty := put(strings.TrimSuffix(redisGoldenCompleted, "0000000300ff41") + "00000000")
	if got := redisMustClaim(t, store, empty, reprise.Completed); got.Payload == nil || len(got.Payload) != 0 {
		t.Errorf("replayed %v, want nothing that is not nil", got.Payload)
	}
}

func TestRedisWritesRecordsOfVersion1(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	store := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	r := redisClaim()
	before, err := client.Time(t.Context()).Result()
	redisWant(t, "time", err, nil)
	claim := redisMustClaim(t, store, r, reprise.Claimed)
	raw := func() []byte {
		t.Helper()
		b, err := client.Get(t.Context(), redisKey(prefix, r.ID)).Bytes()
		redisWant(t, "get", err, nil)
		return b
	}
	instant := func(b []byte) time.Time {
		return time.UnixMicro(int64(binary.BigEndian.Uint64(append([]byte{0}, b[:7]...))))
	}

	running := raw()
	fence := instant(running[5:12])
	head := append([]byte{0x11, 0, 0, 0, 1}, running[5:12]...)
	head = append(head, running[12:19]...)
	head = append(append(head, r.Owner[:]...), r.Fingerprint[:]...)
	if len(running) != 74 || !bytes.HasPrefix(running, head) {
		t.Errorf("in progress is %x, want %x and the lease", running, head)
	}
	if fence.Before(before) || fence.After(before.Add(time.Minute)) || uint64(fence.UnixMicro()) != claim.Fence {
		t.Errorf("the fence is %v, the claim says %d, the server's clock was %v", fence, claim.Fence, before)
	}
	if got := instant(running[12:19]).Sub(fence); got != r.Retention {
		t.Errorf("valid for %v from the claim, want %v", got, r.Retention)
	}
	if got := instant(running[67:74]).Sub(fence); got != r.Lease {
		t.Errorf("leased for %v from the claim, want %v", got, r.Lease)
	}

	redisWant(t, "complete", redisComplete(t, store, r, "answer"), nil)
	completed := raw()
	copy(head[12:19], completed[12:19])
	head[0] = 0x12
	if want := slices.Concat(head, []byte("\x00\x00\x00\x06answer")); !bytes.Equal(completed, want) {
		t.Errorf("completed is %x, want %x", completed, want)
	}
	if got := instant(completed[12:19]); !got.After(fence.Add(r.Retention)) {
		t.Errorf("valid until %v, no later than a claim would make it", got)
	}
	redisOutlives(t, client, redisKey(prefix, r.ID), instant(completed[12:19]))
}

// A live lease outlives retention, and so does the key.
func TestRedisAKeyLastsAsLongAsItsLease(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	store := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	r := redisClaim()
	r.Lease, r.Retention = time.Hour, time.Minute
	fence := redisMustClaim(t, store, r, reprise.Claimed).Fence
	redisOutlives(t, client, redisKey(prefix, r.ID), time.UnixMicro(int64(fence)).Add(time.Hour))

	statuses, err := store.Renew(t.Context(), []reprise.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: 10 * time.Hour}})
	if err != nil || statuses[0] != reprise.Renewed {
		t.Fatalf("renew: %v, %v", statuses, err)
	}
	raw, err := client.Get(t.Context(), redisKey(prefix, r.ID)).Bytes()
	redisWant(t, "get", err, nil)
	lease := time.UnixMicro(int64(binary.BigEndian.Uint64(append([]byte{0}, raw[67:74]...))))
	if !lease.After(time.UnixMicro(int64(fence)).Add(10 * time.Hour)) {
		t.Errorf("renewed until %v, no later than from the claim", lease)
	}
	redisOutlives(t, client, redisKey(prefix, r.ID), lease)
}

// redisOutlives demands that a key lasts a second longer than its record.
func redisOutlives(t *testing.T, client *redis.Client, key string, record time.Time) {
	t.Helper()
	expires, err := client.Do(t.Context(), "PEXPIRETIME", key).Int64()
	redisWant(t, "pexpiretime", err, nil)
	if longer := time.UnixMilli(expires).Sub(record); longer < 900*time.Millisecond || longer > 1100*time.Millisecond {
		t.Errorf("the key outlives its record by %v, want a second", longer)
	}
}

// Every byte of a record that is cut off is noticed.
func TestRedisAShorterRecordIsCorrupt(t *testing.T) {
	t.Parallel()
	client := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	prefix := labtest.RedisPrefix()
	store := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix})
	r := redisClaim()
	for _, record := range []string{redisGoldenRunning, redisGoldenCompleted} {
		whole := redisHex(t, record)
		for _, b := range append(redisPrefixes(whole), append(bytes.Clone(whole), 0)) {
			redisWant(t, "put a record", client.Set(t.Context(), redisKey(prefix, r.ID), b, time.Minute).Err(), nil)
			_, err := store.Claim(t.Context(), r)
			redisWant(t, "claim", err, reprise.ErrCorrupt)
			redisWant(t, "release", store.Release(t.Context(), r.ID, r.Owner), reprise.ErrCorrupt)
			if after, err := client.Get(t.Context(), redisKey(prefix, r.ID)).Bytes(); err != nil || !bytes.Equal(after, b) {
				t.Fatalf("the record was changed to %x, %v", after, err)
			}
		}
	}
}

// redisPrefixes returns all that is shorter than b.
func redisPrefixes(b []byte) (shorter [][]byte) {
	for n := range b {
		shorter = append(shorter, b[:n])
	}
	return shorter
}

func redisHex(tb testing.TB, digits string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(digits)
	redisWant(tb, "hexadecimal", err, nil)
	return b
}
