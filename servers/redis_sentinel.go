package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// RedisSentinel is a primary with two replicas, watched over by three sentinels.
type RedisSentinel struct {
	MasterName string         // its name in the sentinels
	Nodes      []*RedisServer // the first was the primary at the start
	Sentinels  []*RedisServer
}

const (
	sentinelReplicas = 2
	sentinelCount    = 3
	sentinelQuorum   = 2
)

// StartSentinel starts a primary, two replicas and three sentinels for the test, the
// first three with the settings, and waits until the sentinels know all of them. The
// sentinels take over about a second after the primary stopped answering.
func (f *Flavor) StartSentinel(tb testing.TB, settings ...string) *RedisSentinel {
	tb.Helper()
	ctx := tb.Context()
	path, version, err := f.find(ctx)
	must(tb, err)
	primary, err := startNode(tb, path, version, settings)
	must(tb, err)
	set := &RedisSentinel{MasterName: "reprise", Nodes: []*RedisServer{primary}}
	for range sentinelReplicas {
		replica, err := startNode(tb, path, version, replicaOf(primary.Addr(), settings))
		must(tb, err)
		set.Nodes = append(set.Nodes, replica)
	}
	// A sentinel that meets a primary without its replicas asks again only after ten
	// seconds.
	must(tb, poll(func() error { return primary.isFollowedBy(ctx, sentinelReplicas) }))
	for range sentinelCount {
		s, err := set.startOne(tb, path, version)
		must(tb, err)
		set.Sentinels = append(set.Sentinels, s)
	}
	must(tb, poll(func() error { return set.complete(ctx) }))
	return set
}

// startOne starts a sentinel. It keeps its knowledge in its configuration file.
func (r *RedisSentinel) startOne(c cleaner, path string, version Version) (*RedisServer, error) {
	dir, err := scratch(c, nil)
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(r.Nodes[0].addr)
	file := filepath.Join(dir, "sentinel.conf")
	return onFreePort(func(own int) (*RedisServer, error) {
		lines := []string{
			"port " + strconv.Itoa(own),
			"bind " + loopback,
			fmt.Sprintf("sentinel monitor %s %s %s %d", r.MasterName, host, port, sentinelQuorum),
			"sentinel down-after-milliseconds " + r.MasterName + " 1000",
			"sentinel failover-timeout " + r.MasterName + " 5000",
			"sentinel parallel-syncs " + r.MasterName + " 2",
		}
		if p, ok := r.Nodes[0].user.Password(); ok {
			lines = append(lines, "sentinel auth-pass "+r.MasterName+" "+p)
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
		s := &RedisServer{
			addr: address(own), url: "redis://" + address(own), version: version,
			control: control{process: &process{path: path, args: []string{file, "--sentinel"}, dir: dir}},
		}
		err := s.serve(c, s.answers)
		return s, err
	})
}

// complete returns nil when every sentinel knows all replicas and all other sentinels,
// and finds the primary well.
func (r *RedisSentinel) complete(ctx context.Context) error {
	for _, s := range r.Sentinels {
		reply, err := s.Do(ctx, "SENTINEL", "MASTER", r.MasterName)
		if err != nil {
			return err
		}
		m := pairs(reply)
		if m["flags"] != "master" || m["num-slaves"] != strconv.Itoa(sentinelReplicas) || m["num-other-sentinels"] != strconv.Itoa(sentinelCount-1) {
			return fmt.Errorf("the sentinel %s sees a primary %q with %s replicas and %s other sentinels",
				s.addr, m["flags"], m["num-slaves"], m["num-other-sentinels"])
		}
	}
	return nil
}

// pairs reads a reply of alternating names and values.
func pairs(reply any) map[string]string {
	items, _ := reply.([]any)
	m := map[string]string{}
	for i := 0; i+1 < len(items); i += 2 {
		name, _ := items[i].(string)
		m[name], _ = items[i+1].(string)
	}
	return m
}

// SentinelAddrs returns the host:port of each sentinel.
func (r *RedisSentinel) SentinelAddrs() []string {
	return addrs(r.Sentinels)
}

// Primary returns the node that all sentinels that run and are not paused call the
// primary, and that agrees. It waits while they do not agree.
func (r *RedisSentinel) Primary(tb testing.TB) *RedisServer {
	tb.Helper()
	return r.agreed(tb, nil)
}

// AwaitFailover waits until another node than old is the primary, and returns it.
func (r *RedisSentinel) AwaitFailover(tb testing.TB, old *RedisServer) *RedisServer {
	tb.Helper()
	return r.agreed(tb, old)
}

// agreed waits until all sentinels that run name the same primary, which is not the node
// not.
func (r *RedisSentinel) agreed(tb testing.TB, not *RedisServer) (primary *RedisServer) {
	tb.Helper()
	ctx := tb.Context()
	must(tb, poll(func() error {
		primary = nil
		for _, s := range r.Sentinels {
			if !s.process.responsive() {
				continue
			}
			node, err := r.named(ctx, s)
			if err != nil {
				return err
			}
			if primary != nil && node != primary {
				return fmt.Errorf("sentinels name %s and %s as the primary", primary.addr, node.addr)
			}
			primary = node
		}
		if primary == nil || primary == not {
			return errors.New("no failover yet")
		}
		return primary.hasRole(ctx, "master")
	}))
	return primary
}

// named returns the node that a sentinel calls the primary.
func (r *RedisSentinel) named(ctx context.Context, sentinel *RedisServer) (*RedisServer, error) {
	reply, err := sentinel.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", r.MasterName)
	if err != nil {
		return nil, err
	}
	items, _ := reply.([]any)
	if len(items) == 2 {
		host, _ := items[0].(string)
		port, _ := items[1].(string)
		for _, node := range r.Nodes {
			if node.addr == net.JoinHostPort(host, port) {
				return node, nil
			}
		}
	}
	return nil, fmt.Errorf("the sentinel %s names %v", sentinel.addr, reply)
}

func addrs(servers []*RedisServer) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.addr
	}
	return list
}
