package lincheck

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// hasty is a store whose spans end before their time: it asks the one below for less, and
// answers as if it had asked for all.
type hasty struct {
	store.Store
	lease     time.Duration // by which a lease ends early
	retention time.Duration // by which a result is forgotten early
	remaining time.Duration // by which Remaining says too much
}

func (s *hasty) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	r.Lease -= s.lease
	res, err := s.Store.Claim(ctx, r)
	if res.Outcome == store.InProgress || res.Outcome == store.Claimed && res.Remaining > 0 {
		res.Remaining += s.lease + s.remaining
	}
	return res, err
}

func (s *hasty) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	shorter := make([]store.RenewRequest, len(rs))
	for i, r := range rs {
		r.Lease -= s.lease
		shorter[i] = r
	}
	return s.Store.Renew(ctx, shorter)
}

func (s *hasty) Complete(ctx context.Context, r store.CompleteRequest) error {
	r.Retention -= s.retention
	return s.Store.Complete(ctx, r)
}

// TestStoresThatExpireEarlyAreFound: a lease or record that ends early on a real store,
// by its own clock, has no explanation, though a call takes a millisecond or more. 2 ms
// are enough, and 4 ms on Redis, whose clock is that much coarser.
func TestStoresThatExpireEarlyAreFound(t *testing.T) {
	t.Parallel()
	stores := map[string]func(t *testing.T) *deployment{
		"memory": func(*testing.T) *deployment {
			return &deployment{stores: []store.Store{memstore.New()}, clock: memoryClock}
		},
		"redis": func(t *testing.T) *deployment {
			server := servers.Redis.Shared(t)
			return redisDeployment(t, repriseredis.Config{}, func() redis.UniversalClient { return labtest.RedisClient(t, server.Addr()) })
		},
		"postgres": func(t *testing.T) *deployment {
			server := servers.SharedPostgres(t)
			return pgDeployment(t, server, server.URL(), reprisepg.Config{}, false)
		},
	}
	for name, open := range stores {
		early := 2 * time.Millisecond
		if name == "redis" {
			early *= 2
		}
		flaws := map[string]hasty{"lease early": {lease: early}, "forgotten early": {retention: early}, "remaining too long": {remaining: early}}
		for flaw, hurry := range flaws {
			if name == "postgres" && hurry.lease == 0 {
				continue // its calls are so slow that the checker takes long
			}
			t.Run(name+"/"+flaw, func(t *testing.T) {
				t.Parallel()
				d := open(t)
				for i, store := range d.stores {
					h := hurry
					h.Store = store
					d.stores[i] = &h
				}
				found(t, d)
			})
		}
	}
}
