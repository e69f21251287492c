package servers_test

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/servers"
)

func TestReplicatedReplicasFollowCanBeFrozenAndPromoted(t *testing.T) {
	t.Parallel()
	r := servers.Redis.StartReplicated(t, 2)
	do(t, r.Primary, "SET", "k", "v")
	for _, replica := range r.Replicas {
		eventually(t, patient, "the replica has k", func() bool { return do(t, replica, "GET", "k") == "v" })
	}

	// WAIT counts for the connection that wrote.
	c := dial(t, r.Primary.Addr())
	acknowledge := func(ms string) string {
		_, err := c.ask("SET k v\r", patient)
		if err != nil {
			t.Fatal(err)
		}
		n, err := c.ask("WAIT 2 "+ms+"\r", patient)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := acknowledge("5000"); got != ":2\r" {
		t.Errorf("WAIT answers %q", got)
	}
	r.Replicas[0].Pause(t)
	if got := acknowledge("200"); got != ":1\r" {
		t.Errorf("with a frozen replica WAIT answers %q", got)
	}
	r.Replicas[0].Resume(t)
	r.AwaitReplicas(t)

	r.Links[0].Set(t, servers.Refuse)
	_, err := r.Replicas[1].Do(t.Context(), "SET", "k", "w")
	if err == nil || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("a replica answered a write with %v", err)
	}
	r.Promote(t, r.Replicas[1])
	do(t, r.Replicas[1], "SET", "k", "w")

	r.Links[0].Set(t, servers.Forward)
	do(t, r.Replicas[1], "REPLICAOF", "127.0.0.1", r.Links[1].Addr()[strings.LastIndexByte(r.Links[1].Addr(), ':')+1:])
	r.AwaitReplicas(t)
	if got := do(t, r.Replicas[1], "GET", "k"); got != "v" {
		t.Errorf("the replica that came back has %v", got)
	}
}

func TestSentinelsReplaceAKilledPrimary(t *testing.T) {
	t.Parallel()
	r := servers.Redis.StartSentinel(t)
	if len(r.SentinelAddrs()) != 3 || len(r.Nodes) != 3 {
		t.Errorf("%d sentinels, %d nodes", len(r.Sentinels), len(r.Nodes))
	}
	old := r.Primary(t)
	if old != r.Nodes[0] {
		t.Errorf("the primary is %s", old.Addr())
	}
	do(t, old, "SET", "k", "v")
	for _, replica := range r.Nodes[1:] {
		eventually(t, patient, "the replica has k", func() bool { return do(t, replica, "GET", "k") == "v" })
	}
	old.Kill(t)
	primary := r.AwaitFailover(t, old)
	if got := do(t, primary, "GET", "k"); got != "v" {
		t.Errorf("the new primary has %v", got)
	}
	do(t, primary, "SET", "k", "w")
	if primary != r.Primary(t) {
		t.Error("the primary changed again")
	}
	old.Restart(t)
	do(t, old, "PING")
}

func TestClusterServesAllSlotsAndReplacesAPrimary(t *testing.T) {
	t.Parallel()
	c := servers.Redis.StartCluster(t)
	owners := map[*servers.RedisServer]bool{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		primary := c.Primary(t, key)
		do(t, primary, "SET", key, "v")
		owners[primary] = true
	}
	if len(owners) != 3 || len(c.Addrs()) != 6 {
		t.Errorf("%d owners of keys among %d nodes", len(owners), len(c.Nodes))
	}

	old := c.Primary(t, "a")
	replica := c.Replica(t, old)
	keys := do(t, old, "DBSIZE")
	eventually(t, patient, "the replica has all keys", func() bool { return do(t, replica, "DBSIZE") == keys })
	old.Pause(t)
	primary := c.AwaitFailover(t, "a", old)
	if primary != replica {
		t.Errorf("%s is the primary, not the replica %s", primary.Addr(), replica.Addr())
	}
	if got := do(t, primary, "GET", "a"); got != "v" {
		t.Errorf("the new primary has %v", got)
	}
	old.Resume(t)
	if got := c.Replica(t, primary); got != old {
		t.Errorf("%s replicates the new primary, not the old one", got.Addr())
	}
	if got := c.Primary(t, "a"); got != primary {
		t.Errorf("%s is the primary in the end", got.Addr())
	}
}
