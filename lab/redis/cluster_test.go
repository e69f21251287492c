package redis

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

func redisMoveSlot(t *testing.T, cluster *servers.RedisCluster, level repriseredis.Durability) {
	t.Helper()
	client := redisClusterClient(t, cluster)
	prefix := labtest.RedisPrefix()
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix, Durability: level})

	old := labtest.NewClaim() // stays where it is until the end
	slot := redisSlot(labtest.RedisKey(prefix, old.ID))
	next := func() store.ClaimRequest {
		for {
			if r := labtest.NewClaim(); redisSlot(labtest.RedisKey(prefix, r.ID)) == slot {
				return r
			}
		}
	}
	from := cluster.Primary(t, labtest.RedisKey(prefix, old.ID))
	to := cluster.Nodes[0]
	if to == from {
		to = cluster.Nodes[1]
	}
	fromID, toID := redisNodeID(t, from), redisNodeID(t, to)
	labtest.WantClaim(t, st, old, store.Claimed)
	labtest.Want(t, "complete", redisComplete(t, st, old, "old"), nil)
	outlived, lasting := next(), next()
	for _, r := range []*store.ClaimRequest{&outlived, &lasting} {
		r.Horizon = time.Hour
		labtest.WantClaim(t, st, *r, store.Claimed)
	}
	labtest.Want(t, "complete with a horizon", redisComplete(t, st, outlived, "outlived"), nil)

	redisDo(t, to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	redisDo(t, from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	moving := next()
	redisRunOnce(t, st) // in another slot, most of the time
	labtest.WantClaim(t, st, moving, store.Claimed)
	if n := redisDo(t, to, "CLUSTER", "COUNTKEYSINSLOT", slot); n == int64(0) {
		t.Fatal("no key is at the new node, want the one that was asked there")
	}
	labtest.WantClaim(t, st, moving, store.Claimed)
	statuses, err := st.Renew(t.Context(), []store.RenewRequest{{ID: moving.ID, Owner: moving.Owner, Lease: moving.Lease}})
	if err != nil || statuses[0] != store.Renewed {
		t.Errorf("renew while the slot moves: %v, %v", statuses, err)
	}
	labtest.Want(t, "complete while the slot moves", redisComplete(t, st, moving, "moving"), nil)
	labtest.WantClaim(t, st, moving, store.Completed)
	labtest.WantClaim(t, st, old, store.Completed)
	labtest.WantClaim(t, st, outlived, store.Completed)
	redisWaits(t, st, lasting)
	if err := redisComplete(t, st, lasting, "lasting"); !errors.Is(err, store.ErrUnavailable) { // its second key would be at the other node
		t.Errorf("complete with a horizon while the slot moves: %v, want ErrUnavailable", err)
	}
	labtest.WantClaim(t, st, lasting, store.Claimed)
	page, err := st.List(t.Context(), store.Query{Limit: 100})
	labtest.Want(t, "list while the slot moves", err, nil)
	if !slices.ContainsFunc(page.Records, func(r store.Record) bool { return r.ID == lasting.ID }) {
		t.Errorf("a running attempt is not among %d listed records", len(page.Records))
	}

	host, port, err := net.SplitHostPort(to.Addr())
	labtest.Want(t, "address", err, nil)
	keys, _ := redisDo(t, from, "CLUSTER", "GETKEYSINSLOT", slot, "1000").([]any) // also of concurrent users of the cluster
	for _, key := range keys {
		redisDo(t, from, "MIGRATE", host, port, key.(string), "0", "5000")
	}
	for _, node := range append([]*servers.RedisServer{to, from}, cluster.Nodes[:3]...) {
		redisDo(t, node, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	}
	labtest.WantClaim(t, st, old, store.Completed) // MOVED
	moved := next()
	labtest.WantClaim(t, st, moved, store.Claimed)
	labtest.Want(t, "complete after the move", redisComplete(t, st, moved, "moved"), nil)
	labtest.Want(t, "complete with a horizon after the move", redisComplete(t, st, lasting, "lasting"), nil)
	for _, r := range []store.ClaimRequest{old, moving, moved, outlived, lasting} {
		r.Owner = store.NewOwner()
		labtest.WantClaim(t, st, r, store.Completed)
	}
}

// A planned failover redirects all calls for some slots at once. They reach the promoted
// node over the connections of the client's pool for it, and not over one for each call.
func TestRedisClusterRedirectsShareConnections(t *testing.T) {
	t.Parallel()
	cluster := servers.Redis.StartCluster(t)
	const pool, callers = 4, 64
	promoted := cluster.Nodes[len(cluster.Nodes)-1]
	var dialled atomic.Int64
	client := labtest.RedisCluster(t, &redis.ClusterOptions{
		Addrs: cluster.Addrs(), PoolSize: pool, ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == promoted.Addr() {
				dialled.Add(1)
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	})
	st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: labtest.RedisPrefix()})
	var over atomic.Bool
	var claimed atomic.Int64
	var claiming sync.WaitGroup
	for range callers {
		claiming.Go(func() {
			for !over.Load() && !t.Failed() {
				if _, err := st.Claim(t.Context(), labtest.NewClaim()); err == nil {
					claimed.Add(1)
				} else if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrBusy) {
					t.Errorf("claim: %v", err)
				}
			}
		})
	}
	labtest.Eventually(t, "claims are made", func() bool { return claimed.Load() > 10*callers })
	redisDo(t, promoted, "CLUSTER", "FAILOVER")
	labtest.Eventually(t, "the replica is promoted", func() bool {
		reply, err := promoted.Do(t.Context(), "ROLE")
		role, _ := reply.([]any)
		return err == nil && len(role) > 0 && role[0] == "master"
	})
	before := claimed.Load()
	labtest.Eventually(t, "claims are made after it", func() bool { return claimed.Load() > before+100*callers })
	over.Store(true)
	claiming.Wait()
	t.Logf("%d claims, %d connections to the promoted node", claimed.Load(), dialled.Load())
	// Newer clients dial again while the node is being promoted, the more often the faster
	// the machine is. Without the pool each caller would dial, with every redirected call.
	if n := dialled.Load(); n == 0 || n >= callers {
		t.Errorf("%d connections to the promoted node were dialled, want some, and fewer than %d", n, callers)
	}
}

// redisAnyID uses IDs whose bytes look like a hash tag; client and server have to agree
// where such a key lives.
func redisAnyID(t *testing.T, cluster *servers.RedisCluster) {
	t.Helper()
	client := redisClusterClient(t, cluster)
	for _, level := range []repriseredis.Durability{repriseredis.Async(), repriseredis.Acked(1)} {
		st := labtest.RedisStore(t, client, repriseredis.Config{Prefix: labtest.RedisPrefix(), Durability: level})
		for i, special := range []string{"{tag}", "{}", "}{", "{", "\r\n", "\x00", "*[?]\\", "{" + strings.Repeat("x", 31), "}", "a}"} {
			r := labtest.NewClaim()
			copy(r.ID[:], special)
			r.Horizon = time.Duration((i+1)%2) * time.Hour // a second key
			labtest.WantClaim(t, st, r, store.Claimed)
			changed, stop, err := st.Watch(t.Context(), r.ID)
			labtest.Want(t, "watch", err, nil)
			redisWaits(t, st, r)
			labtest.Want(t, "complete", redisComplete(t, st, r, special), nil)
			redisHears(t, "complete", changed)
			stop()
			if got := labtest.WantClaim(t, st, r, store.Completed); string(got.Payload) != special {
				t.Errorf("%q: replayed %q", special, got.Payload)
			}
		}
		if page, err := st.List(t.Context(), store.Query{Limit: 100}); err != nil || len(page.Records) != 10 {
			t.Errorf("list: %d records, %v; want 10 of three nodes", len(page.Records), err)
		}
	}
}

// redisRightClient checks a cluster through a client that knows of it, and one that does
// not.
func redisRightClient(t *testing.T, cluster *servers.RedisCluster) {
	t.Helper()
	st := labtest.RedisStore(t, redisClusterClient(t, cluster), repriseredis.Config{Durability: repriseredis.Acked(1)})
	if findings, err := st.Check(t.Context()); err != nil || redisHas(findings, store.Unsafe) {
		t.Errorf("a cluster in order has the findings %v, %v", findings, err)
	}

	single := labtest.RedisStore(t, labtest.RedisClient(t, cluster.Nodes[0].Addr()), repriseredis.Config{})
	findings, err := single.Check(t.Context())
	if err != nil || !redisHas(findings, store.Unsafe) {
		t.Errorf("a client that knows of no cluster has the findings %v, %v", findings, err)
	}
	labtest.Eventually(t, "a key of another node is refused", func() bool {
		_, err := single.Claim(t.Context(), labtest.NewClaim())
		if err != nil {
			labtest.Want(t, "claim", err, store.ErrMisconfigured)
		}
		return err != nil
	})
}

func redisHas(findings []store.Finding, severity store.Severity) bool {
	for _, f := range findings {
		if f.Severity == severity {
			return true
		}
	}
	return false
}

// redisDo sends a command to one node, numbers included, and fails the test when the node
// refuses it.
func redisDo(tb testing.TB, node *servers.RedisServer, args ...string) any {
	tb.Helper()
	answer, err := node.Do(tb.Context(), args...)
	labtest.Want(tb, strings.Join(args[:2], " "), err, nil)
	return answer
}

func redisNodeID(tb testing.TB, node *servers.RedisServer) string {
	tb.Helper()
	id, _ := redisDo(tb, node, "CLUSTER", "MYID").(string)
	return id
}

// redisSlot computes the slot of a key as the specification of Redis Cluster says:
// CRC-16/XMODEM of the hash tag or key.
func redisSlot(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return strconv.Itoa(int(crc % 16384))
}
