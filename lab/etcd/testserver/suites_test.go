package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/matrix"
)

func TestMain(m *testing.M) { etcdcluster.Main(m, 24) }

// The row of etcd in the matrix.
func TestMatrix(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "testserver")
	labtest.Must(t, etcdcluster.Build(".", program))
	member := etcdcluster.Start(t, 3).Addrs()[0] // one, so that a link can be cut
	row := matrix.Stores[slices.IndexFunc(matrix.Stores, func(s matrix.Store) bool { return s.Name == "etcd" })]
	row.Place = func(testing.TB) ([]string, string) { return []string{"-etcd-url", member}, member }
	matrix.RunAll(t, []matrix.Store{row}, func(string) (string, string) { return program, "" })
}
