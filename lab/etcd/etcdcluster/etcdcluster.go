// Package etcdcluster gives tests clusters of etcd, and stores over them.
package etcdcluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/lab/etcd"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseetcd "github.com/reprise-go/reprise/store/etcd"
)

// Grain is a unit of time of the suites that is well above Late. A shorter one takes
// longer: cases that find that they took too long go on with twice the time.
const Grain = 7 * time.Second

// Late is how long after its end a lease may still hold: the second for which it is
// shared, the one to which it is rounded, and the half until the server looks.
const Late = 2500 * time.Millisecond

// Advance waits until the server has ended all leases of a prefix that last for d. A
// server on a busy machine is late by more than Late: it repeats a revocation that took
// too long after three seconds.
func Advance(tb testing.TB, client *clientv3.Client, prefix string, d time.Duration) {
	tb.Helper()
	conformance.Sleep(tb, d+Late)
	Eventually(tb, func() error {
		r, err := client.Get(tb.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		seen := map[int64]bool{}
		for _, kv := range r.Kvs {
			if seen[kv.Lease] {
				continue
			}
			seen[kv.Lease] = true
			l, err := client.TimeToLive(tb.Context(), clientv3.LeaseID(kv.Lease))
			if err != nil || l.TTL <= 0 {
				return fmt.Errorf("the lease of %q has ended, and its keys are there: %w", kv.Key, err)
			}
		}
		return nil
	})
}

// Main runs the tests of a package that starts clusters, so many at once unless the
// command line says otherwise: most wait for leases to end.
func Main(m *testing.M, parallel int) {
	_ = flag.Set("test.parallel", strconv.Itoa(parallel))
	flag.Parse()
	labtest.Main(m, func() { _ = os.RemoveAll(server.dir) })
}

var server struct {
	once sync.Once
	dir  string
	err  error
}

// otherEnv names a server of another version.
const otherEnv = "REPRISE_TEST_ETCD"

// program returns the path of the server, which is built once.
func program(tb testing.TB) string {
	tb.Helper()
	if other := os.Getenv(otherEnv); other != "" {
		return other
	}
	server.once.Do(func() {
		server.dir, server.err = os.MkdirTemp("", "reprise-etcd-") //nolint:usetesting // it outlives the test that comes first
		if server.err == nil {
			server.err = build(filepath.Join(server.dir, "etcd"))
		}
	})
	if server.err != nil {
		tb.Fatal(server.err)
	}
	return filepath.Join(server.dir, "etcd")
}

// build builds the server at target. The go command finds its folder, because
// runtime.Caller does not know it with -trimpath.
func build(target string) error {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/reprise-go/reprise/lab/etcd") //nolint:noctx // the tests share it
	module, err := list.Output()
	if err != nil {
		return fmt.Errorf("finding the module of the server: %w", err)
	}
	return Build(filepath.Join(strings.TrimSpace(string(module)), "etcd"), target)
}

// Build builds the program in a folder, without the workspace.
func Build(folder, target string) error {
	build := exec.Command("go", "build", "-o", target, ".") //nolint:noctx // the tests share it
	build.Dir, build.Env = folder, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", folder, err, out)
	}
	return nil
}

// elections are the clusters that may elect at once. Beside six of them and their clients
// a member took a minute to find that its leader was away, because its clock counts the
// times that it gets a processor.
var elections = make(chan struct{}, 3)

// await waits until a cluster of several members may start.
func await(tb testing.TB, members int) {
	if members > 1 {
		elections <- struct{}{}
		tb.Cleanup(func() { <-elections })
	}
}

// Start starts a cluster for the test.
func Start(tb testing.TB, members int, settings ...string) *servers.EtcdCluster {
	tb.Helper()
	await(tb, members)
	return servers.StartEtcd(tb, program(tb), members, append(settings, unsynced()...)...)
}

// StartLinked starts a cluster whose links between members the test can cut.
func StartLinked(tb testing.TB, members int) *servers.EtcdCluster {
	tb.Helper()
	await(tb, members)
	return servers.StartLinkedEtcd(tb, program(tb), members, unsynced()...)
}

// unsynced is the setting of servers that wait for no disk. Tests kill processes, and no
// machine, so the writes of a server stay.
func unsynced() []string {
	if os.Getenv(otherEnv) != "" {
		return nil // 3.4 does not have it
	}
	return []string{"--unsafe-no-fsync"}
}

// Connect returns a client of members.
func Connect(tb testing.TB, addrs ...string) *clientv3.Client {
	tb.Helper()
	client, err := etcd.Connect(addrs...)
	labtest.Must(tb, err)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

var prefixes atomic.Int64

// Prefix returns a prefix that no other test has.
func Prefix() string { return fmt.Sprintf("test%d/", prefixes.Add(1)) }

// Open opens a store over a client.
func Open(tb testing.TB, client *clientv3.Client, prefix string) *repriseetcd.Store {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	var st *repriseetcd.Store
	Eventually(tb, func() (err error) { // a new cluster may still elect its leader
		st, err = repriseetcd.Open(ctx, client, repriseetcd.Config{Prefix: prefix})
		return err
	})
	return st
}

// Eventually polls until check returns nil.
func Eventually(tb testing.TB, check func() error) {
	tb.Helper()
	err := check()
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); err = check() {
		Pause(tb.Context(), 50*time.Millisecond)
	}
	labtest.Must(tb, err)
}

// Pause waits for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
