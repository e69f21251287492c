package repriseredis

import (
	"context"
	"errors"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// panicking is a hook of a client that panics after the command it names.
type panicking string

func (panicking) DialHook(next redis.DialHook) redis.DialHook { return next }

func (name panicking) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		if c.Name() == string(name) {
			panic("hook")
		}
		return err
	}
}

func (name panicking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		if commands[0].Name() == string(name) {
			panic("hook")
		}
		return err
	}
}

// clusterOf returns the client of a cluster of one node.
func clusterOf(t *testing.T, node *redis.Client) *redis.ClusterClient {
	t.Helper()
	addr := node.Options().Addr
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
		},
		NewClient: func(*redis.Options) *redis.Client { return node },
	})
	t.Cleanup(func() { _ = cluster.Close() })
	return cluster
}

// A hook of the client that panics neither confirms the commands of its batch nor
// keeps the connection.
func TestAPanicConfirmsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hook    panicking
		cluster bool // its nodes are called in goroutines
	}{{"wait", false}, {"evalsha", false}, {"wait", true}, {"evalsha", true}} {
		hook := c.hook
		node := newClient(t, confirming(t, claimed, ":1\r\n"))
		node.AddHook(hook)
		var client redis.UniversalClient = node
		if c.cluster {
			client = clusterOf(t, node)
		}
		s, err := New(client, Config{Prefix: servicePrefix, Durability: Acked(1)})
		if err != nil {
			t.Fatal(err)
		}
		batch := []*command{{script: record.ClaimScript, wait: true}, {script: record.ClaimScript, wait: true}}
		for _, c := range batch {
			s.call(t.Context(), c, store.ID{})
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the hook did not panic", hook)
				}
			}()
			s.transmit(t.Context(), batch)()
		}()
		for _, c := range batch {
			if err := c.refusal(); !errors.Is(err, store.ErrNotReplicated) {
				t.Errorf("%s: a write of this batch: %v, want ErrNotReplicated", hook, err)
			}
		}
		if stats := node.PoolStats(); stats.TotalConns != stats.IdleConns {
			t.Errorf("%s: %d of %d connections are lost", hook, stats.TotalConns-stats.IdleConns, stats.TotalConns)
		}
	}
}

// A client for one attempt on a node that a cluster named leaves no state behind for the
// client that the cluster client makes of that node.
func TestARedirectDecidesNothingForItsNode(t *testing.T) {
	t.Parallel()
	there := confirming(t, claimed, ":1\r\n")
	here := confirming(t, "-MOVED 0 "+there.Addr+"\r\n", ":1\r\n")
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		Protocol: 2, DisableIdentity: true, PoolSize: 8,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: here.Addr}}}}, nil
		},
	})
	t.Cleanup(func() { _ = cluster.Close() })
	s, err := New(cluster, Config{Prefix: servicePrefix, Durability: Acked(1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim(t, s); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(here.Addr)
	if addrs := slices.Collect(maps.Keys(s.confirmSlots.byAddr)); len(addrs) != 1 || !strings.HasSuffix(addrs[0], ":"+port) {
		t.Errorf("the nodes with slots are %v, want that of the cluster, %s", addrs, here.Addr)
	}
	node := redis.NewClient(&redis.Options{Addr: there.Addr, PoolSize: 8})
	t.Cleanup(func() { _ = node.Close() })
	n := s.confirmSlots.of(node)
	if cap(n.slots) != 4 {
		t.Errorf("the node has %d slots, want half of its pool", cap(n.slots))
	}
	if n.ready.Load() {
		t.Error("the client of the node has not dialled and counts as ready")
	}
}

// A client is asked once whether it has dialled.
func TestOnlyTheFirstWritePings(t *testing.T) {
	t.Parallel()
	f := confirming(t, claimed, ":1\r\n")
	s := newStore(t, f, Config{Durability: Acked(1)})
	for range 3 {
		if _, err := claim(t, s); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.Pings.Load(); n != 1 {
		t.Errorf("three writes sent %d pings, want one", n)
	}
}

// A server that hangs before it was ever reached holds no call longer than that call's
// own time.
func TestACallDoesNotWaitForTheDialOfAnother(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	f.Hangs.Store(true)
	s, err := New(newClient(t, f, func(o *redis.Options) { o.ReadTimeout = time.Hour }), Config{Prefix: servicePrefix, Durability: Acked(1), NoCombining: true})
	if err != nil {
		t.Fatal(err)
	}
	long, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := make(chan error, 1)
	r := store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}}
	go func() { _, err := s.Claim(long, r); first <- err }()
	for f.Pings.Load() == 0 {
		runtime.Gosched()
	}
	short, cancelShort := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelShort()
	if _, err := s.Claim(short, r); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("claim: %v, want ErrUnavailable", err)
	}
	select {
	case err := <-first:
		t.Fatalf("the first call ended before the second: %v", err)
	default:
	}
	f.Stop()
	if err := <-first; err == nil {
		t.Error("the first call succeeded")
	}
}
