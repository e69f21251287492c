package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/matrix"
	"github.com/reprise-go/reprise/servers"
)

func TestMain(m *testing.M) { etcdcluster.Main(m, 24) }

// The rows of etcd in the matrix.
func TestMatrix(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "testserver")
	labtest.Must(t, etcdcluster.Build(".", program))
	member, redis := etcdcluster.Start(t, 3).Addrs()[0], servers.Redis.Shared(t) // by one member, so that a link can be cut
	place := []string{"-etcd-url", member, "-redis-url", redis.URL()}
	var stores []matrix.Store
	for _, s := range matrix.Stores {
		if strings.HasPrefix(s.Name, "etcd") {
			s.Place = func(testing.TB) ([]string, string) { return place, member }
			stores = append(stores, s)
		}
	}
	matrix.RunAll(t, stores, func(string) (string, string) { return program, "" })
}
