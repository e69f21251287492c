package main

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	labfasthttp "github.com/reprise-go/reprise/lab/fasthttp"
	"github.com/reprise-go/reprise/lab/matrix"
	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/servers"
	repriseetcd "github.com/reprise-go/reprise/store/etcd"
)

// More at once would be more than two cores answer in the time that some cases give a
// store.
func TestMain(m *testing.M) { etcdcluster.Main(m, 24) }

// waivers are those of the adapters over every store.
var waivers = map[string][]conformance.Waiver{
	"nethttp": matrix.NetHTTPWaivers, "gin": matrix.NetHTTPWaivers, "echo": matrix.NetHTTPWaivers, "echo5": matrix.NetHTTPWaivers,
	"fiber": labfasthttp.Waivers(), "fiber3": labfasthttp.Waivers(),
}

// The rows of etcd in the matrix.
func TestMatrix(t *testing.T) {
	t.Parallel()
	addrs, redis := etcdcluster.Start(t, 1).Addrs(), servers.Redis.Shared(t)
	client := etcdcluster.Connect(t, addrs...)
	row := matrix.Store{
		Name: "etcd",
		Connect: func(testing.TB) func() func(testing.TB) store.Store {
			return func() func(testing.TB) store.Store {
				return func(tb testing.TB) store.Store {
					st, err := repriseetcd.New(etcdcluster.Connect(tb, addrs...), repriseetcd.Config{Prefix: tb.Name() + "/"})
					if err != nil {
						tb.Fatal(err)
					}
					return st
				}
			}
		},
		Grain: etcdcluster.Grain, Patience: time.Minute,
		Advance: func(tb testing.TB, d time.Duration) {
			tb.Helper()
			if d >= etcdcluster.Grain { // for something to end
				etcdcluster.Advance(tb, client, tb.Name()+"/", d)
			} else {
				conformance.Sleep(tb, d)
			}
		},
	}
	hybrid := row
	hybrid.Name = "etcd+redis"
	hybrid.Blobs = func(tb testing.TB) protocol.BlobStore {
		blobs, closes, err := serve.OpenRedisBlobs(tb.Context(), serve.StoreOptions{RedisURL: redis.URL(), RedisPrefix: etcdcluster.Prefix()}, time.Hour)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(closes)
		return blobs
	}
	for adapter, build := range adapters {
		t.Run(adapter, func(t *testing.T) {
			t.Parallel()
			matrix.RunOver(t, []matrix.Store{row, hybrid}, adapter, build, waivers[adapter]...)
		})
	}
}
