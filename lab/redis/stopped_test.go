package redis

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisStopped is a client hook that stops the clock which the scripts read, and can
// refuse one command to them. The server's own clock goes on: keys expire by it, so a
// test stops the clock in a future that the server does not reach.
type redisStopped struct {
	micros  atomic.Int64
	refused atomic.Value // a string; empty: none
}

func (s *redisStopped) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *redisStopped) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook makes the store send the source of a script, and puts the stopped clock in
// front of it.
func (s *redisStopped) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := append([]any(nil), cmd.Args()...)
		switch args[0] {
		case "evalsha":
			args[1] = strings.Repeat("0", 40)
		case "eval":
			args[1] = s.before(args[1].(string))
		default:
			return next(ctx, cmd)
		}
		sent := redis.NewStringCmd(ctx, args...)
		err := next(ctx, sent)
		if err == nil {
			cmd.(interface{ SetVal(string) }).SetVal(sent.Val())
		}
		return err
	}
}

// before returns a script that reads the stopped clock.
func (s *redisStopped) before(source string) string {
	var flags string
	if strings.HasPrefix(source, "#!") {
		flags, source, _ = strings.Cut(source, "\n")
		flags += "\n"
	}
	now := s.micros.Load()
	refused, _ := s.refused.Load().(string)
	return flags + fmt.Sprintf(`local server = redis
local function stopped(call)
  return function(name, ...)
    if name == '%s' then return call('REFUSED') end
    if name == 'TIME' then return {'%d', '%d'} end
    return call(name, ...)
  end
end
local redis = {call = stopped(server.call), pcall = stopped(server.pcall), sha1hex = server.sha1hex}
`, refused, now/1_000_000, now%1_000_000) + source
}

// redisBench is a store whose scripts read a stopped clock.
type redisBench struct {
	*repriseredis.Store
	clock  *redisStopped
	client *redis.Client
	prefix string
}

// redisEpoch is a millisecond of the future: the instant from which these tests count.
const redisEpoch = 4_102_444_800_000

// redisFence is the fence of a first attempt at the epoch.
const redisFence = redisEpoch*1000 + 999

func newRedisBench(t *testing.T) *redisBench {
	t.Helper()
	b := &redisBench{clock: new(redisStopped), client: labtest.RedisClient(t, servers.Redis.Shared(t).Addr()), prefix: labtest.RedisPrefix()}
	stopped := labtest.RedisClient(t, servers.Redis.Shared(t).Addr())
	stopped.AddHook(b.clock)
	b.Store = labtest.RedisStore(t, stopped, repriseredis.Config{Prefix: b.prefix, NoCombining: true})
	b.at(0)
	return b
}

// at stops the clock this long after the epoch.
func (b *redisBench) at(d time.Duration) { b.clock.micros.Store(redisEpoch*1000 + d.Microseconds()) }

// refuse makes the scripts fail at a command until the next call; empty is none.
func (b *redisBench) refuse(command string) { b.clock.refused.Store(command) }

// expires returns in which millisecond after the epoch a key expires.
func (b *redisBench) expires(t *testing.T, key string) int64 {
	t.Helper()
	return b.client.PExpireTime(t.Context(), key).Val().Milliseconds() - redisEpoch
}

// put puts a golden record, if there is one, under the key of the golden claim which it
// returns. The key expires at the end of this millisecond after the epoch.
func (b *redisBench) put(t *testing.T, record string, expires int64) store.ClaimRequest {
	t.Helper()
	r := labtest.NewClaim()
	r.Owner = store.Owner(redisHex(t, redisGoldenOwner))
	r.Fingerprint = store.Fingerprint(redisHex(t, redisGoldenFingerprint))
	r.Lease, r.Label = 30*time.Second, "pay"
	r.Waiting = true // so that the script decides
	if record != "" {
		key := labtest.RedisKey(b.prefix, r.ID)
		labtest.Want(t, "put a record", b.client.Do(t.Context(), "set", key, redisHex(t, record), "pxat", redisEpoch+expires).Err(), nil)
	}
	return r
}
