package redis

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

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
	fromID, toID := redisDo(t, from, "CLUSTER", "MYID").(string), redisDo(t, to, "CLUSTER", "MYID").(string)
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

// redisDo sends a command to one server, numbers included, and fails the test when it is
// refused.
func redisDo(tb testing.TB, node *servers.RedisServer, args ...string) any {
	tb.Helper()
	answer, err := node.Do(tb.Context(), args...)
	labtest.Want(tb, strings.Join(args[:2], " "), err, nil)
	return answer
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
