package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The side effect has happened, so its response is kept even if the memory is full; only
// new operations are refused.
func TestRedisWithFullMemoryCompletesRunningAttempts(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		client := labtest.RedisClient(t, flavor.Start(t, "maxmemory-policy=noeviction").Addr())
		st := labtest.RedisStore(t, client, repriseredis.Config{})
		done, running, released, unknown := labtest.NewClaim(), labtest.NewClaim(), labtest.NewClaim(), labtest.NewClaim()
		for _, r := range []store.ClaimRequest{done, running, released, unknown} {
			labtest.WantClaim(t, st, r, store.Claimed)
		}
		labtest.Want(t, "complete", redisComplete(t, st, done, "answer"), nil)
		// As if its claim were of this millisecond, whose fence a release has to leave.
		labtest.Want(t, "expire later", client.Expire(t.Context(), labtest.RedisKey(labtest.ServicePrefix, released.ID), 24*time.Hour).Err(), nil)
		labtest.Want(t, "limit the memory", client.ConfigSet(t.Context(), "maxmemory", "1mb").Err(), nil)

		_, err := st.Claim(t.Context(), labtest.NewClaim())
		labtest.Want(t, "claim of a new key", err, store.ErrFull)
		labtest.WantClaim(t, st, done, store.Completed)
		statuses, err := st.Renew(t.Context(), []store.RenewRequest{{ID: running.ID, Owner: running.Owner, Lease: running.Lease}})
		if err != nil || statuses[0] != store.Renewed {
			t.Errorf("renew: %v, %v; want renewed", statuses, err)
		}
		answer := strings.Repeat("a", 100_000)
		labtest.Want(t, "complete", redisComplete(t, st, running, answer), nil)
		if got := labtest.WantClaim(t, st, running, store.Completed); string(got.Payload) != answer {
			t.Errorf("replayed %d bytes, want %d", len(got.Payload), len(answer))
		}
		labtest.Want(t, "release", st.Release(t.Context(), released.ID, released.Owner), nil)
		labtest.Want(t, "mark an outcome as unknown", st.Unknown(t.Context(), store.UnknownRequest{ID: unknown.ID, Owner: unknown.Owner, Reason: "bank"}), nil)
		shown, err := st.Inspect(t.Context(), unknown.ID)
		labtest.Want(t, "inspect", err, nil)
		resolution := store.Resolution{State: shown.State, Fence: shown.Fence, Payload: []byte("answer"), Retention: time.Hour}
		labtest.Want(t, "resolve", st.Resolve(t.Context(), unknown.ID, resolution), nil)
	})
}

// redisRunOnce claims, renews together with an attempt that is none, completes and
// replays.
func redisRunOnce(t *testing.T, st store.Store) {
	t.Helper()
	r := labtest.NewClaim()
	if got, err := st.Claim(t.Context(), r); err != nil || got.Outcome != store.Claimed {
		t.Errorf("claim: %v, %v", got.Outcome, err)
	}
	batch := []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}, {ID: r.ID, Owner: store.NewOwner(), Lease: r.Lease}}
	if got, err := st.Renew(t.Context(), batch); err != nil || got[0] != store.Renewed || got[1] != store.RenewLost {
		t.Errorf("renew: %v, %v", got, err)
	}
	if err := redisComplete(t, st, r, "answer"); err != nil {
		t.Errorf("complete: %v", err)
	}
	if got, err := st.Claim(t.Context(), r); err != nil || got.Outcome != store.Completed || string(got.Payload) != "answer" {
		t.Errorf("replay: %+v, %v", got, err)
	}
}

// A server that became a replica refuses to write, which is definite and over once the
// client finds its successor.
func TestRedisADemotedServerDidNotExecute(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		pair := flavor.StartReplicated(t, 1)
		client := labtest.RedisClient(t, pair.Primary.Addr())
		r := labtest.NewClaim()
		labtest.WantClaim(t, labtest.RedisStore(t, client, repriseredis.Config{Durability: repriseredis.Acked(1)}), r, store.Claimed)
		st := labtest.RedisStore(t, client, repriseredis.Config{})

		pair.Promote(t, pair.Replicas[0])
		host, port, _ := strings.Cut(pair.Replicas[0].Addr(), ":")
		redisDo(t, pair.Primary, "REPLICAOF", host, port)
		_, err := st.Claim(t.Context(), labtest.NewClaim())
		labtest.Want(t, "claim", err, store.ErrUnavailable)
		labtest.Want(t, "complete", redisComplete(t, st, r, "answer"), store.ErrUnavailable)
		_, err = st.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
		labtest.Want(t, "renew", err, store.ErrUnavailable)
		labtest.Want(t, "release", st.Release(t.Context(), r.ID, r.Owner), store.ErrUnavailable)
		findings, err := st.Check(t.Context())
		labtest.Want(t, "check", err, nil)
		if len(findings) == 0 || findings[len(findings)-1].Code != "replica" {
			t.Errorf("findings %v, want one about the replica", findings)
		}

		redisDo(t, pair.Primary, "REPLICAOF", "NO", "ONE")
		labtest.Want(t, "complete after all", redisComplete(t, st, r, "answer"), nil)
	})
}
