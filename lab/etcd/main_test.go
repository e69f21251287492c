package etcd_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
)

func TestMain(m *testing.M) { etcdcluster.Main(m, 100) }
