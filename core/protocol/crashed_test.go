package protocol_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// unrenewed is the store of a process that can no longer reach it: its claims stay, and
// are not renewed.
type unrenewed struct{ store.Store }

func (unrenewed) Renew(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
	return nil, store.ErrUnavailable
}

// A client of another process is asked to come back soon as long as the first request may
// run, and otherwise when its lease has lapsed.
func TestR20RetryAfterEndsWithTheLeaseOfADeadProcess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		renewed bool
		want    map[int]string // by the second
	}{
		"a dead process":    {want: map[int]string{0: "1", 10: "1", 14: "1", 15: "10", 18: "10", 22: "8", 29: "1"}},
		"a running process": {renewed: true, want: map[int]string{0: "1", 15: "1", 22: "1", 45: "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				one := memstore.New()
				var first store.Store = one
				if !test.renewed {
					first = unrenewed{one}
				}
				owner := setupOver(t, first, protocol.Config{})
				x := owner.admit("k", "body").Exchange
				if x == nil {
					t.Fatal("the first request does not run")
				}
				defer x.Finish(protocol.Captured{Status: http.StatusCreated})

				other := setupOver(t, one, protocol.Config{Engine: reprise.Config{Observer: reprise.Observers()}})
				began := time.Now()
				for second := range 50 {
					want, ask := test.want[second]
					if ask {
						time.Sleep(time.Until(began.Add(time.Duration(second) * time.Second)))
						if got, _ := other.admit("k", "body").Response.Header.Get("Retry-After"); got != want {
							t.Errorf("after %d s Retry-After is %q, want %q", second, got, want)
						}
					}
				}
			})
		})
	}
}
