package sqlstore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/parallel"
)

// A batch is renewed in parts of eachRenews records or more, each over one connection.
// There are at most mostRenewers parts, and half as many as the pool has connections.
const (
	eachRenews   = 16
	mostRenewers = 8
)

// renewEach renews the entries of a batch independently of each other. If one has an
// answer of the server, those without one answer RenewBusy, and their error is dropped:
// the entry was not begun, or it failed and may have been renewed.
func (t *Table) renewEach(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	renewers := mostRenewers
	if _, conns := t.Conns(); conns > 0 {
		renewers = min(renewers, max(conns/2, 1))
	}
	size := max(eachRenews, (len(rs)+renewers-1)/renewers)
	var (
		statuses = slices.Repeat([]store.RenewStatus{store.RenewBusy}, len(rs))
		group    parallel.Group
		mu       sync.Mutex
		answered bool
		failed   error // the weakest of all: any entry may have been renewed
	)
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		answered = answered || err == nil
		if failed == nil || errors.Is(err, store.ErrUnknown) {
			failed = err
		}
	}
	for first := 0; first < len(rs); first += size {
		at, end := first, min(first+size, len(rs))
		group.Go(func() {
			for ; at < end; at++ { // behind an entry that failed
				err := t.Write(ctx, "renew", func(ctx context.Context, on Conn) error {
					for ; at < end; at++ {
						status, err := t.renew(ctx, on, &rs[at])
						if err != nil {
							return err
						}
						statuses[at] = status
						note(nil)
					}
					return nil
				})
				if note(err); ctx.Err() != nil || !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrUnknown) {
					return
				}
			}
		})
	}
	group.Wait()
	if !answered {
		return nil, failed
	}
	return statuses, nil
}
