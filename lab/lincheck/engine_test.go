package lincheck

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// engineLease is so long that no attempt of a history lapses: the engine renews in the
// background, where no history sees it.
const engineLease = time.Minute

// engineStore makes calls of an engine out of calls of a store, so that the histories of
// an engine, with its table of what runs in its process and the claims that duplicates
// share, are held against the same model.
type engineStore struct {
	*reprise.Engine
	mu       sync.Mutex
	attempts map[reprise.Owner]*reprise.Attempt
}

func (s *engineStore) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	op := reprise.Operation{Scope: "lincheck", Key: r.ID.String(), Fingerprint: r.Fingerprint, Retention: r.Retention}
	res, err := s.Begin(ctx, op)
	if err != nil || res.Outcome != reprise.Claimed {
		return reprise.ClaimResult{Outcome: res.Outcome, Payload: res.Payload}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[r.Owner] = res.Attempt
	view := res.Attempt.View()
	return reprise.ClaimResult{Outcome: reprise.Claimed, Attempt: view.Number(), Fence: view.Fence(), Remaining: engineLease}, nil
}

func (s *engineStore) take(owner reprise.Owner) *reprise.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[owner]
	delete(s.attempts, owner)
	return a
}

func (s *engineStore) Renew(context.Context, []reprise.RenewRequest) ([]reprise.RenewStatus, error) {
	panic("the engine renews by itself")
}

func (s *engineStore) Complete(_ context.Context, r reprise.CompleteRequest) error {
	a := s.take(r.Owner)
	if a == nil {
		return reprise.ErrLeaseLost // its claim had no answer, or another one
	}
	res, err := a.Complete(reprise.Completion{Payload: r.Payload}) //nolint:contextcheck // the engine bounds it
	switch {
	case err != nil:
		return err
	case res.Status == reprise.Recorded:
		return nil
	default:
		return fmt.Errorf("%w: %v: %w", reprise.ErrCorrupt, res.Status, res.Err) // no fault was made: what no model knows
	}
}

func (s *engineStore) Release(_ context.Context, _ reprise.ID, owner reprise.Owner) error {
	if a := s.take(owner); a != nil {
		return a.Release() //nolint:contextcheck // the engine bounds it
	}
	return nil
}

// engines is a deployment of one engine over each of the stores.
func engines(t *testing.T, d *deployment) *deployment {
	t.Helper()
	d.engines, d.exclusive = true, true
	for i, store := range d.stores {
		engine, err := reprise.New(store, reprise.Config{Lease: engineLease, Observer: reprise.Silent})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
		d.stores[i] = &engineStore{Engine: engine, attempts: map[reprise.Owner]*reprise.Attempt{}}
	}
	return d
}

// everythingEngines is what a history of engines has to meet.
var everythingEngines = []string{"claimed", "in-progress", "completed", "mismatch", "complete", "release", "unknown claim", "unknown complete"}

func TestEnginesAreLinearizable(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		store := memstore.New()
		checked(t, engines(t, &deployment{stores: []reprise.Store{store, store}}), everythingEngines...)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := servers.Redis.Shared(t)
		d := redisDeployment(t, repriseredis.Config{}, func() redis.UniversalClient { return labtest.RedisClient(t, server.Addr()) })
		checked(t, engines(t, d), everythingEngines...)
	})
}
