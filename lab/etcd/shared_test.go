package etcd_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"weak"

	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// A process renews its attempts in one batch. A record that another release wrote, in a
// layout that this one cannot read, is no reason to lose the others.
func TestUnreadableRecordCostsNoOtherAttemptItsLease(t *testing.T) {
	t.Parallel()
	client, mine := single(t), etcdcluster.Prefix()
	st := etcdcluster.Open(t, client, mine)
	first, _ := claimed(t, st, "unreadable")
	second, _ := claimed(t, st, "readable")
	corrupt(t, client, mine, first.ID, storetest.UnknownVersion)
	statuses, err := st.Renew(t.Context(), []store.RenewRequest{
		{ID: first.ID, Owner: first.Owner, Lease: first.Lease}, {ID: second.ID, Owner: second.Owner, Lease: second.Lease},
	})
	if err != nil || statuses[0] != store.RenewLost || statuses[1] != store.Renewed {
		t.Errorf("%v, %v, want lost and renewed", statuses, err)
	}
}

// request is the context of a request.
type request struct{ context.Context }

// The client has one stream for all watches, which lives as long as any of them, and has
// the values of the context that began it.
func TestWatchesKeepNothingOfTheRequestThatBeganThem(t *testing.T) {
	t.Parallel()
	st := etcdcluster.Open(t, single(t), etcdcluster.Prefix())
	watch := func(name string) (weak.Pointer[request], func()) {
		ctx := &request{t.Context()}
		_, stop, err := st.Watch(ctx, claimOf(name).ID)
		labtest.Must(t, err)
		return weak.Make(ctx), stop
	}
	left, leave := watch("first")
	_, stop := watch("other")
	defer stop()
	leave()
	etcdcluster.Eventually(t, func() error {
		if runtime.GC(); left.Value() != nil {
			return errors.New("the context of the first request is kept")
		}
		return nil
	})
}
