package lincheck

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// longLease is so long that no attempt of a history lapses.
const longLease = time.Minute

// engineStore makes calls of an engine out of calls of a store, so that the histories of
// an engine, with its table of running attempts and the claims that duplicates share, are
// checked against the same model.
type engineStore struct {
	*reprise.Engine
	wire     *wire // to the store
	mu       sync.Mutex
	attempts map[store.Owner]*reprise.Attempt
}

func (s *engineStore) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	op := reprise.Operation{Scope: "lincheck", Key: r.ID.String(), Fingerprint: r.Fingerprint, Retention: r.Retention, Horizon: r.Horizon}
	if r.AtMostOnce {
		op.Preset = reprise.AtMostOnce
	}
	res, err := s.Begin(ctx, op)
	if err != nil || res.Outcome != reprise.Claimed {
		return store.ClaimResult{Outcome: store.Outcome(res.Outcome), Payload: res.Payload}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[r.Owner] = res.Attempt
	view := res.Attempt.View()
	if s.wire != nil {
		s.wire.name(view, held{id: r.ID, owner: r.Owner})
	}
	return store.ClaimResult{Outcome: store.Claimed, Attempt: view.Number(), Fence: view.Fence(), Remaining: longLease}, nil
}

func (s *engineStore) take(owner store.Owner) *reprise.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[owner]
	delete(s.attempts, owner)
	return a
}

func (s *engineStore) Renew(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
	panic("the engine renews by itself")
}

func (s *engineStore) Complete(_ context.Context, r store.CompleteRequest) error {
	a := s.take(r.Owner)
	if a == nil {
		return store.ErrLeaseLost // its claim had no result, or another one
	}
	res, err := a.Complete(reprise.Completion{Payload: r.Payload}) //nolint:contextcheck // the engine bounds it
	switch {
	case err != nil:
		return err
	case res.End == reprise.EndRecorded:
		return nil
	case s.wire != nil && (res.End == reprise.EndSuperseded || res.End == reprise.EndContested):
		return store.ErrLeaseLost
	default:
		return fmt.Errorf("%w: %v: %w", store.ErrCorrupt, res.End, res.Err) // without a fault: outside of the model
	}
}

func (s *engineStore) Release(_ context.Context, _ store.ID, owner store.Owner) error {
	if a := s.take(owner); a != nil {
		return a.Release() //nolint:contextcheck // the engine bounds it
	}
	return nil
}

func (s *engineStore) Unknown(_ context.Context, r store.UnknownRequest) error {
	a := s.take(r.Owner)
	if a == nil {
		return store.ErrLeaseLost
	}
	return a.Unknown(r.Reason) //nolint:contextcheck // the engine bounds it
}

// engines is a deployment of one engine over each of the stores.
func engines(t *testing.T, d *deployment) *deployment {
	t.Helper()
	d.engines, d.exclusive, d.clock = true, true, clock{tick: d.clock.tick}
	d.pace.lease = cmp.Or(d.pace.lease, longLease)
	for i, st := range d.stores {
		below, _ := st.(*wire)
		engine, err := reprise.New(st, reprise.Config{Lease: d.pace.lease, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
		d.stores[i] = &engineStore{Engine: engine, wire: below, attempts: map[store.Owner]*reprise.Attempt{}}
	}
	return d
}

// everythingEngines are the situations that a history of engines must meet.
var everythingEngines = []string{"claimed", "in-progress", "completed", "mismatch", "complete", "release", "lapsed", "unknown", "unknown claim", "unknown complete"}

func TestEnginesAreLinearizable(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		st := memstore.New()
		checked(t, engines(t, &deployment{stores: []store.Store{st, st}}), everythingEngines...)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := servers.Redis.Shared(t)
		d := redisDeployment(t, repriseredis.Config{}, func() redis.UniversalClient { return labtest.RedisClient(t, server.Addr()) })
		checked(t, engines(t, d), everythingEngines...)
	})
}
