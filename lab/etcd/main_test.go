package etcd_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/lab/etcd"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/servers"
	repriseetcd "github.com/reprise-go/reprise/store/etcd"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "reprise-etcd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	defer os.RemoveAll(dir)
	labtest.Main(m)
}

// programs is the folder of the built server.
var programs string

// build builds the server once.
var build = sync.OnceValues(func() (string, error) {
	target := filepath.Join(programs, "etcd")
	out, err := exec.Command("go", "build", "-o", target, "./etcd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building etcd: %w\n%s", err, out)
	}
	return target, nil
})

// program returns the path of the server.
func program(tb testing.TB) string {
	tb.Helper()
	if other := os.Getenv("REPRISE_TEST_ETCD"); other != "" { // of another version
		return other
	}
	path, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// connect returns a client of members.
func connect(tb testing.TB, addrs ...string) *clientv3.Client {
	tb.Helper()
	client, err := etcd.Connect(addrs...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

var prefixes atomic.Int64

// prefix returns a prefix that no other test has.
func prefix() string { return fmt.Sprintf("test%d/", prefixes.Add(1)) }

// open returns a store over a client.
func open(tb testing.TB, client *clientv3.Client, prefix string) *repriseetcd.Store {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	st, err := repriseetcd.Open(ctx, client, repriseetcd.Config{Prefix: prefix})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

// start starts a cluster.
func start(tb testing.TB, members int, settings ...string) *servers.EtcdCluster {
	tb.Helper()
	return servers.StartEtcd(tb, program(tb), members, settings...)
}
