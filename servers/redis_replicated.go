package servers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// RedisReplicated is a primary with replicas, without anything that watches over them.
type RedisReplicated struct {
	Primary  *RedisServer
	Replicas []*RedisServer
	Links    []*Proxy // Links[i] is the path of Replicas[i] to the primary
}

// StartReplicated starts a primary with a number of replicas for the test, all with the
// same settings, and waits until the replicas follow.
func (f *Flavor) StartReplicated(tb testing.TB, replicas int, settings ...string) *RedisReplicated {
	tb.Helper()
	path, version, err := f.find(tb.Context())
	must(tb, err)
	primary, err := startNode(tb, path, version, settings)
	must(tb, err)
	r := &RedisReplicated{Primary: primary}
	for range replicas {
		link := StartProxy(tb, primary.Addr())
		replica, err := startNode(tb, path, version, replicaOf(link.Addr(), settings))
		must(tb, err)
		r.Links, r.Replicas = append(r.Links, link), append(r.Replicas, replica)
	}
	r.AwaitReplicas(tb)
	return r
}

// replicaOf returns the settings of a replica of the server at addr.
func replicaOf(addr string, settings []string) []string {
	return append(slices.Clip(settings), "replicaof="+strings.ReplaceAll(addr, ":", " "))
}

// AwaitReplicas waits until all replicas follow the primary, as after a link came back.
func (r *RedisReplicated) AwaitReplicas(tb testing.TB) {
	tb.Helper()
	must(tb, poll(func() error {
		for _, replica := range r.Replicas {
			if err := replica.follows(tb.Context()); err != nil {
				return err
			}
		}
		return r.Primary.isFollowedBy(tb.Context(), len(r.Replicas))
	}))
}

// Promote makes a replica a primary, and waits until it is one. The old primary is not
// notified.
func (r *RedisReplicated) Promote(tb testing.TB, replica *RedisServer) {
	tb.Helper()
	_, err := replica.Do(tb.Context(), "REPLICAOF", "NO", "ONE")
	must(tb, err)
	must(tb, poll(func() error { return replica.hasRole(tb.Context(), "master") }))
}

// follows returns nil when the server is a replica in sync with its primary.
func (s *RedisServer) follows(ctx context.Context) error {
	info, err := s.info(ctx, "replication")
	if err == nil && (info["role"] != "slave" || info["master_link_status"] != "up") {
		err = fmt.Errorf("%s is %s with its link %s", s.addr, info["role"], info["master_link_status"])
	}
	return err
}

// isFollowedBy returns nil when n replicas receive the server's writes.
func (s *RedisServer) isFollowedBy(ctx context.Context, n int) error {
	info, err := s.info(ctx, "replication")
	if err != nil {
		return err
	}
	online := 0
	for name, value := range info {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") {
			online++
		}
	}
	if online != n {
		return fmt.Errorf("%s has %d of %d replicas", s.addr, online, n)
	}
	return nil
}

// hasRole returns nil when the server has the role: master or slave, as it calls them.
func (s *RedisServer) hasRole(ctx context.Context, role string) error {
	info, err := s.info(ctx, "replication")
	if err == nil && info["role"] != role {
		err = fmt.Errorf("%s is %s", s.addr, info["role"])
	}
	return err
}
