package etcd_test

import (
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/matrix"
	labhttp "github.com/reprise-go/reprise/lab/nethttp"
)

// The column of etcd in the matrix, for net/http. It is here because the matrix is in the
// workspace.
func TestAdapterConformance(t *testing.T) {
	t.Parallel()
	client := single(t)
	adaptertest.Run(t, func(testing.TB) adaptertest.Fixture {
		mine := prefix()
		return adaptertest.Fixture{
			Open:  func(tb testing.TB) store.Store { return open(tb, client, mine) },
			Serve: testapp.InTest(labhttp.New),
			Advance: func(tb testing.TB, d time.Duration) {
				tb.Helper()
				if d >= grain { // for something to end
					d += late
				}
				conformance.Sleep(tb, d)
			},
			Grain: grain, Patience: time.Minute,
			Waivers: matrix.NetHTTPWaivers,
		}
	})
}
