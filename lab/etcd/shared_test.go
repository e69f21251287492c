package etcd_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"weak"

	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
)

// request is the context of a request.
type request struct{ context.Context }

// The client has one stream for all watches, which lives as long as any of them, and has
// the values of the context that began it.
func TestWatchesKeepNothingOfTheRequestThatBeganThem(t *testing.T) {
	t.Parallel()
	st := etcdcluster.Open(t, single(t), etcdcluster.Prefix())
	begin := func(name string) (weak.Pointer[request], func()) {
		ctx := &request{t.Context()}
		_, stop := watch(ctx, t, st, claimOf(name).ID)
		return weak.Make(ctx), stop
	}
	left, leave := begin("first")
	_, stop := begin("other")
	defer stop()
	leave()
	etcdcluster.Eventually(t, func() error {
		if runtime.GC(); left.Value() != nil {
			return errors.New("the context of the first request is kept")
		}
		return nil
	})
}
