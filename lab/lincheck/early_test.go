package lincheck

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// hasty is a store whose spans end at half of their time: it asks the one below for that,
// and answers as if it had asked for all.
type hasty struct {
	store.Store
	lease     bool // ends early
	retention bool // ends early
	remaining bool // says too much

	ahead time.Duration // its clock is ahead of this process' by so much more
}

func (s *hasty) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	r.Lease = halved(r.Lease, s.lease)
	res, err := s.Store.Claim(ctx, r)
	if s.lease || s.remaining {
		res.Remaining *= 2
	}
	if res.Outcome == store.Claimed {
		res.Fence += uint64(s.ahead.Microseconds())
	}
	return res, err
}

func (s *hasty) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	shorter := make([]store.RenewRequest, len(rs))
	for i, r := range rs {
		r.Lease = halved(r.Lease, s.lease)
		shorter[i] = r
	}
	return s.Store.Renew(ctx, shorter)
}

func (s *hasty) Complete(ctx context.Context, r store.CompleteRequest) error {
	r.Retention = halved(r.Retention, s.retention)
	return s.Store.Complete(ctx, r)
}

func halved(span time.Duration, early bool) time.Duration {
	if early {
		return span / 2
	}
	return span
}

// TestStoresThatExpireEarlyAreFound: a lease or record that ends early on a real store,
// by its own clock, has no explanation.
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
			d := pgDeployment(t, server, server.URL(), reprisepg.Config{}, false)
			d.pace.calls = calls / 4 // the checker takes long to exclude every order of many slow calls
			return d
		},
	}
	for name, open := range stores {
		flaws := map[string]hasty{"lease early": {lease: true}, "forgotten early": {retention: true}, "remaining too long": {remaining: true}}
		for flaw, hurry := range flaws {
			if name == "postgres" && !hurry.lease {
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

// TestServersClockMayBeAnother: a server whose clock is an hour ahead is right.
func TestServersClockMayBeAnother(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	d := pgDeployment(t, server, server.URL(), reprisepg.Config{}, false)
	for i, store := range d.stores {
		d.stores[i] = &hasty{Store: store, ahead: time.Hour}
	}
	checked(t, d, "claimed", "takeover")
}
