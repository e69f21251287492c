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

// renewals are the entries of a batch, which its renewers take.
type renewals struct {
	*Table

	entries  []store.RenewRequest
	statuses []store.RenewStatus
	next     atomic.Int64       // the first entry that none has taken
	allTaken context.CancelFunc // ends the waiting for a connection

	mu       sync.Mutex
	answered bool
	failed   error // the weakest of all: any entry may have been renewed
}

// renewEach renews the entries of a batch independently of each other. If one has an
// answer of the server, those without one answer RenewBusy, and their error is dropped:
// the entry was not begun, or it failed and may have been renewed.
func (t *Table) renewEach(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	renewers := mostRenewers
	if _, conns := t.Conns(); conns > 0 {
		renewers = min(renewers, max(conns/2, 1))
	}
	renewers = min(renewers, (len(rs)+eachRenews-1)/eachRenews)
	waits, allTaken := context.WithCancel(ctx)
	defer allTaken()
	b := renewals{Table: t, entries: rs, statuses: slices.Repeat([]store.RenewStatus{store.RenewBusy}, len(rs)), allTaken: allTaken}
	var group parallel.Group
	for range renewers {
		group.Go(func() {
			for b.renew(ctx, waits) { // behind an entry that failed
			}
		})
	}
	group.Wait()
	if !b.answered {
		return nil, b.failed
	}
	return b.statuses, nil
}

// renew renews entries over one connection, and reports whether an entry failed behind
// which others may be renewed. It takes none before it has the connection, for which it
// waits until waits ends.
func (b *renewals) renew(ctx, waits context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(waits, cancel)
	entry := -1
	err := b.Write(ctx, "renew", func(ctx context.Context, on Conn) error {
		if entry < 0 {
			if !stop() {
				return waits.Err()
			}
			entry = b.take()
		}
		for ; entry < len(b.entries); entry = b.take() {
			status, err := b.Table.renew(ctx, on, &b.entries[entry])
			if err != nil {
				return err
			}
			b.statuses[entry] = status
			b.note(nil)
		}
		return nil
	})
	if err == nil || entry < 0 && b.left() <= 0 {
		return false
	}
	b.note(err)
	return entry >= 0 && ctx.Err() == nil && (errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrUnknown))
}

// take returns the next entry, or one that is not there.
func (b *renewals) take() int {
	entry := int(b.next.Add(1)) - 1
	if b.left() <= 0 {
		b.allTaken()
	}
	return entry
}

// left returns how many entries none has taken, or less than that.
func (b *renewals) left() int { return len(b.entries) - int(b.next.Load()) }

// note notes the answer for an entry, or for one that failed.
func (b *renewals) note(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered = b.answered || err == nil
	if b.failed == nil || errors.Is(err, store.ErrUnknown) {
		b.failed = err
	}
}
