package redis

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// A completion that a limit of the server never lets pass was not executed, and is found
// out before it happens. When the limit is raised, the same completion succeeds.
func TestRedisALimitOfTheServerRefusesLongCompletions(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		for _, c := range []struct {
			name, limit, raised string
			passes, refused     int // sizes of payloads
			level               repriseredis.Durability
		}{
			{"client-query-buffer-limit", "1mb", "1gb", mib - 2, mib - 1, repriseredis.Async()},
			{"client-query-buffer-limit", "1mb", "1gb", mib - 2, 2 * mib, repriseredis.Acked(1)},
			{"proto-max-bulk-len", "1mb", "512mb", mib, mib + 1, repriseredis.Acked(1)},
			{"proto-max-bulk-len", "1mb", "512mb", mib, 8 * mib, repriseredis.Async()},
			{"maxmemory-clients", "1mb", "0", mib / 32, mib + 1, repriseredis.Async()},
			{"maxmemory-clients", "1%", "0", mib / 32, 8 * mib, repriseredis.Async()},
		} {
			t.Run(c.name+" "+strconv.Itoa(c.refused), func(t *testing.T) {
				t.Parallel()
				testRedisPayloadLimit(t, flavor, c.level, c.name, c.limit, c.raised, c.passes, c.refused)
			})
		}
	})
}

func testRedisPayloadLimit(t *testing.T, flavor *servers.Flavor, level repriseredis.Durability, name, limit, raised string, passes, refused int) {
	t.Helper()
	settings := []string{"maxmemory=100mb", "maxmemory-policy=noeviction", "appendonly=yes"}
	var addr string
	if level == repriseredis.Async() {
		addr = flavor.Start(t, settings...).Addr()
	} else {
		addr = flavor.StartReplicated(t, 1, settings...).Primary.Addr()
	}
	client := redis.NewClient(redisOnePool(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}))
	t.Cleanup(func() { _ = client.Close() })
	st := labtest.RedisStore(t, client, repriseredis.Config{Durability: level})
	var fits, longer store.ClaimRequest
	labtest.Eventually(t, "the replica confirms", func() bool {
		fits, longer = labtest.NewClaim(), labtest.NewClaim()
		_, err := st.Claim(t.Context(), fits)
		return err == nil
	})
	labtest.Eventually(t, "the replica confirms again", func() bool {
		_, err := st.Claim(t.Context(), longer)
		return err == nil
	})
	check := func() (found string) {
		t.Helper()
		findings, err := st.Check(t.Context())
		labtest.Want(t, "check", err, nil)
		for _, f := range findings {
			if found += f.Code + " " + f.Severity.String(); !strings.Contains(f.Detail, name) {
				t.Errorf("the finding does not name %s: %s", name, f.Detail)
			}
		}
		return found
	}

	labtest.Want(t, "set the limit", client.ConfigSet(t.Context(), name, limit).Err(), nil)
	if found := check(); found != "payload-limit warning" {
		t.Errorf("found %q", found)
	}
	completes := func(r store.ClaimRequest, payload string) { // a busy machine may confirm late
		t.Helper()
		labtest.Eventually(t, "a completion succeeds", func() bool { return redisComplete(t, st, r, payload) == nil })
	}
	completes(fits, strings.Repeat("a", passes))
	answer := strings.Repeat("b", refused)
	labtest.Want(t, "complete above the limit", redisComplete(t, st, longer, answer), store.ErrFull)
	labtest.WantClaim(t, st, labtest.Rival(longer), store.InProgress)
	if got := labtest.WantClaim(t, st, fits, store.Completed); len(got.Payload) != passes {
		t.Errorf("replayed %d bytes, want %d", len(got.Payload), passes)
	}

	labtest.Want(t, "raise the limit", client.ConfigSet(t.Context(), name, raised).Err(), nil)
	if found := check(); found != "" {
		t.Errorf("found %q above a raised limit", found)
	}
	completes(longer, answer)
	if got := labtest.WantClaim(t, st, longer, store.Completed); string(got.Payload) != answer {
		t.Errorf("replayed %d bytes, want %d", len(got.Payload), refused)
	}
}

// A broken connection does not show why: without the permission to ask for the limit, a
// completion above it may have been executed, for all that the store knows.
func TestRedisALimitThatIsNotShownIsUnknown(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t, "client-query-buffer-limit=1mb", "appendonly=yes")
	client := redisUser(t, server, "service", "~*", "&*", "+@all", "-config")
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	findings, err := st.Check(t.Context())
	if err != nil || len(findings) > 0 {
		t.Errorf("found %v, %v; want none", findings, err)
	}
	r := labtest.Claimed(t, st)
	labtest.Want(t, "complete", redisComplete(t, st, r, strings.Repeat("a", 2<<20)), store.ErrUnknown)
}
