package servers

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

// RedisCluster is a cluster of three primaries with a replica each.
type RedisCluster struct {
	Nodes []*RedisServer // the first three were the primaries at the start, Nodes[i+3] the replica of Nodes[i]
}

const (
	clusterPrimaries = 3
	clusterSlots     = 16384
)

// StartCluster starts a cluster for the test, all nodes with the same settings, and waits
// until every node knows every other, all slots are served, and the replicas follow.
// Nodes that stop answering are replaced after about two seconds.
func (f *Flavor) StartCluster(tb testing.TB, settings ...string) *RedisCluster {
	tb.Helper()
	ctx := tb.Context()
	path, version, err := f.find(ctx)
	must(tb, err)
	cluster := &RedisCluster{}
	for range 2 * clusterPrimaries {
		node, err := startClusterNode(tb, path, version, settings)
		must(tb, err)
		cluster.Nodes = append(cluster.Nodes, node)
	}
	must(tb, cluster.assign(ctx))
	must(tb, cluster.meet(ctx))
	must(tb, poll(func() error { return cluster.replicate(ctx) }))
	must(tb, poll(func() error { return cluster.healthy(ctx) }))
	return cluster
}

// startClusterNode starts a node that is alone in its cluster. Its bus has another free
// port: the usual one, 10,000 above the node's, may be in use.
func startClusterNode(c cleaner, path string, version Version, settings []string) (*RedisServer, error) {
	return onFreePort(func(bus int) (*RedisServer, error) {
		defaults := []string{
			"cluster-enabled=yes", "cluster-port=" + strconv.Itoa(bus), "cluster-node-timeout=2000",
			"cluster-allow-replica-migration=no", "cluster-replica-validity-factor=0",
		}
		return startNode(c, path, version, append(defaults, settings...))
	})
}

// assign gives each primary its slots, and a distinct configuration epoch so that they
// need not negotiate one first.
func (c *RedisCluster) assign(ctx context.Context) error {
	for i, node := range c.Nodes {
		if _, err := node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		if i >= clusterPrimaries {
			continue
		}
		first, next := i*clusterSlots/clusterPrimaries, (i+1)*clusterSlots/clusterPrimaries
		if _, err := node.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(next-1)); err != nil {
			return err
		}
	}
	return nil
}

// meet introduces every node to every other: by gossip alone they need seconds.
func (c *RedisCluster) meet(ctx context.Context) error {
	for i, node := range c.Nodes {
		for _, other := range c.Nodes[i+1:] {
			host, port, _ := net.SplitHostPort(other.addr)
			if _, err := node.Do(ctx, "CLUSTER", "MEET", host, port, other.setting("cluster-port")); err != nil {
				return err
			}
		}
	}
	return nil
}

// setting returns the value of a setting on the command line of the server.
func (s *RedisServer) setting(name string) string {
	for i, arg := range s.process.args[:len(s.process.args)-1] {
		if arg == "--"+name {
			return s.process.args[i+1]
		}
	}
	return ""
}

// replicate makes the other nodes replicas. It is repeated until they know the primaries.
func (c *RedisCluster) replicate(ctx context.Context) error {
	for i, replica := range c.Nodes[clusterPrimaries:] {
		if replica.hasRole(ctx, "slave") == nil {
			continue
		}
		id, err := c.Nodes[i].Do(ctx, "CLUSTER", "MYID")
		if err != nil {
			return err
		}
		text, _ := id.(string)
		if _, err := replica.Do(ctx, "CLUSTER", "REPLICATE", text); err != nil {
			return err
		}
	}
	return nil
}

// healthy returns nil when every node finds the cluster well and knows the role of every
// other, and the replicas follow.
func (c *RedisCluster) healthy(ctx context.Context) error {
	for i, node := range c.Nodes {
		reply, err := node.Do(ctx, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		text, _ := reply.(string)
		info := fields(text)
		if info["cluster_state"] != "ok" || info["cluster_slots_ok"] != strconv.Itoa(clusterSlots) {
			return fmt.Errorf("%s finds the cluster %s with %s slots", node.addr, info["cluster_state"], info["cluster_slots_ok"])
		}
		if err := c.knowsRoles(ctx, node); err != nil {
			return err
		}
		if i < clusterPrimaries {
			err = node.isFollowedBy(ctx, 1)
		} else {
			err = node.follows(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// knowsRoles returns nil when a node knows all nodes, without any in doubt, and half of
// them as replicas.
func (c *RedisCluster) knowsRoles(ctx context.Context, node *RedisServer) error {
	reply, err := node.Do(ctx, "CLUSTER", "NODES")
	if err != nil {
		return err
	}
	text, _ := reply.(string)
	known, replicas := 0, 0
	for line := range strings.Lines(text) {
		// id, address, flags, primary, …, link state, slots
		f := strings.Fields(line)
		if len(f) < 8 || strings.Contains(f[2], "fail") || strings.Contains(f[2], "handshake") || f[7] != "connected" {
			return fmt.Errorf("%s sees %s", node.addr, line)
		}
		known++
		if strings.Contains(f[2], "slave") {
			replicas++
		}
	}
	if known != len(c.Nodes) || replicas != len(c.Nodes)-clusterPrimaries {
		return fmt.Errorf("%s knows %d nodes, %d of them replicas", node.addr, known, replicas)
	}
	return nil
}
