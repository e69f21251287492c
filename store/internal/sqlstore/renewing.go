package sqlstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/parallel"
)

// A batch has a renewer for every eachRenews records, each over one connection: at most
// mostRenewers, and at most half as many as the pool has connections. They take one entry
// after the other, so that a connection that hangs holds up one entry.
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
	renewers = min(renewers, (len(rs)+eachRenews-1)/eachRenews)
	var (
		next     atomic.Int64
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
	take := func() int { return int(next.Add(1)) - 1 }
	for range renewers {
		group.Go(func() {
			for at := take(); at < len(rs); at = take() { // behind an entry that failed
				err := t.Write(ctx, "renew", func(ctx context.Context, on Conn) error {
					for ; at < len(rs); at = take() {
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
