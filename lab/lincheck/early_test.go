package lincheck

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// hasty is a store whose leases end at a share of their time: it asks the one below for
// that, and answers as if it had asked for all.
type hasty struct {
	store.Store
	share time.Duration // of a lease, 1 or 2 for all or half of it
	ahead time.Duration // its clock is ahead of this process' by so much more
}

func (s *hasty) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	r.Lease /= s.share
	res, err := s.Store.Claim(ctx, r)
	res.Remaining *= s.share
	if res.Outcome == store.Claimed {
		res.Fence += uint64(s.ahead.Microseconds())
	}
	return res, err
}

func (s *hasty) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	shorter := slices.Clone(rs)
	for i := range shorter {
		shorter[i].Lease /= s.share
	}
	return s.Store.Renew(ctx, shorter)
}

// TestLeasesThatEndEarlyAreFound: on a real store, by its own clock, such a lease has no
// explanation. Other flaws of time are among those of the small store.
func TestLeasesThatEndEarlyAreFound(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) *deployment{
		"memory": func(*testing.T) *deployment {
			return &deployment{stores: []store.Store{memstore.New()}, clock: memoryClock}
		},
		"redis": func(t *testing.T) *deployment {
			t.Helper()
			return redisAt(t, servers.Redis.Shared(t), repriseredis.Config{})
		},
		"postgres": func(t *testing.T) *deployment {
			t.Helper()
			server := servers.SharedPostgres(t)
			d := pgDeployment(t, server.URL(), labtest.SetupPostgres(t, server).Config, false, false)
			d.pace.calls = calls / 4 // the checker takes long to exclude every order of many slow calls
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			for i, store := range d.stores {
				d.stores[i] = &hasty{Store: store, share: 2}
			}
			found(t, d)
		})
	}
}

// TestServersClockMayBeAnother: a server whose clock is an hour ahead is right.
func TestServersClockMayBeAnother(t *testing.T) {
	t.Parallel()
	d := redisAt(t, servers.Redis.Shared(t), repriseredis.Config{})
	for i, store := range d.stores {
		d.stores[i] = &hasty{Store: store, share: 1, ahead: time.Hour}
	}
	checked(t, d, "claimed", "takeover")
}
