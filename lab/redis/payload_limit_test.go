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
		for _, c := range []payloadLimit{
			{"client-query-buffer-limit", "1mb", "1gb", mib - 2, mib - 1, repriseredis.Async()},
			{"client-query-buffer-limit", "1mb", "1gb", mib - 2, 2 * mib, repriseredis.Acked(1)},
			{"proto-max-bulk-len", "1mb", "512mb", mib, mib + 1, repriseredis.Acked(1)},
			{"proto-max-bulk-len", "1mb", "512mb", mib, 2 * mib, repriseredis.Async()},
			{"maxmemory-clients", "1mb", "0", mib / 32, mib + 1, repriseredis.Async()},
			{"maxmemory-clients", "1%", "0", mib / 32, 2 * mib, repriseredis.Async()},
		} {
			t.Run(c.name+" "+strconv.Itoa(c.refused), func(t *testing.T) {
				t.Parallel()
				c.test(t, flavor)
			})
		}
	})
}

// payloadLimit is a limit of a server for payloads.
type payloadLimit struct {
	name, limit, raised string
	passes, refused     int // sizes of payloads
	level               repriseredis.Durability
}

func (c payloadLimit) test(t *testing.T, flavor *servers.Flavor) {
	t.Helper()
	settings := []string{"maxmemory=100mb", "maxmemory-policy=noeviction", "appendonly=yes"}
	var addr string
	if c.level == repriseredis.Async() {
		addr = flavor.Start(t, settings...).Addr()
	} else {
		addr = flavor.StartReplicated(t, 1, settings...).Primary.Addr()
	}
	client := redis.NewClient(redisOnePool(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}))
	t.Cleanup(func() { _ = client.Close() })
	st := labtest.RedisStore(t, client, repriseredis.Config{Durability: c.level})
	fits, longer := labtest.NewClaim(), labtest.NewClaim()
	for _, r := range []store.ClaimRequest{fits, longer} {
		labtest.Eventually(t, "the replica confirms", func() bool { _, err := st.Claim(t.Context(), r); return err == nil })
	}
	check := func(want string) {
		t.Helper()
		findings, err := st.Check(t.Context())
		labtest.Want(t, "check", err, nil)
		found := ""
		for _, f := range findings {
			if found += f.Code + " " + f.Severity.String(); !strings.Contains(f.Detail, c.name) {
				t.Errorf("the finding does not name %s: %s", c.name, f.Detail)
			}
		}
		if found != want {
			t.Errorf("found %q, want %q", found, want)
		}
	}
	completes := func(r store.ClaimRequest, size int) { // a busy machine may confirm late
		t.Helper()
		payload := strings.Repeat("a", size)
		labtest.Eventually(t, "a completion succeeds", func() bool { return redisComplete(t, st, r, payload) == nil })
		if got := labtest.WantClaim(t, st, r, store.Completed); string(got.Payload) != payload {
			t.Errorf("replayed %d bytes, want %d", len(got.Payload), size)
		}
	}

	labtest.Want(t, "set the limit", client.ConfigSet(t.Context(), c.name, c.limit).Err(), nil)
	check("payload-limit warning")
	completes(fits, c.passes)
	labtest.Want(t, "complete above the limit", redisComplete(t, st, longer, strings.Repeat("b", c.refused)), store.ErrFull)
	labtest.WantClaim(t, st, labtest.Rival(longer), store.InProgress)

	labtest.Want(t, "raise the limit", client.ConfigSet(t.Context(), c.name, c.raised).Err(), nil)
	check("")
	completes(longer, c.refused)
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
