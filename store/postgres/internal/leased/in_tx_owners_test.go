package leased

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestInTxOwnersAreForgotten: owners whose attempts have no end that the store hears of
// do not stay for ever, and those whose records are valid do.
func TestInTxOwnersAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c inTxOwners
		lasting := store.NewOwner()
		if c.called(lasting) {
			t.Error("an owner that never called is there")
		}
		c.add(lasting, 1000*time.Hour)
		for range 10_000 {
			c.add(store.NewOwner(), time.Minute)
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		}
		if n := len(c.owners); n > 4*120+sweepMin {
			t.Errorf("%d owners are kept, of whom at most 121 are needed", n)
		}
		brief := store.NewOwner()
		c.add(brief, time.Minute)
		time.Sleep(2*time.Minute - time.Nanosecond) //nolint:forbidigo // in a bubble
		for range 10_000 {
			c.add(store.NewOwner(), 0)
		}
		if !c.called(brief) {
			t.Error("an owner was forgotten in the minute that the server's clock may go slower")
		}
		if !c.called(lasting) {
			t.Error("an owner whose record is valid was forgotten")
		}
		c.forget(lasting)
		if c.called(lasting) {
			t.Error("an owner whose attempt ended is still there")
		}
	})
}
