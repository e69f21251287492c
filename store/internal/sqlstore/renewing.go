package sqlstore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/parallel"
)

// A batch is renewed over one connection for each eachRenews records, up to mostRenewers
// and half of the pool.
const (
	eachRenews   = 16
	mostRenewers = 8
)

// renewal is a batch whose writes commit one by one.
type renewal struct {
	*Table

	batch    []store.RenewRequest
	statuses []store.RenewStatus

	mu       sync.Mutex
	taken    int   // entries that were begun
	answered int   // entries with a status of the server
	err      error // the first failure
}

// renewEach renews the entries of a batch independently of each other. If one has an
// answer of the server, those without one answer RenewBusy, and their error is dropped:
// the entry was not begun, or it failed and may have been renewed.
func (t *Table) renewEach(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	b := &renewal{Table: t, batch: rs, statuses: slices.Repeat([]store.RenewStatus{store.RenewBusy}, len(rs))}
	renewers := min((len(rs)+eachRenews-1)/eachRenews, mostRenewers)
	if _, conns := t.Conns(); conns > 0 {
		renewers = min(renewers, max(conns/2, 1))
	}
	waiting, cancel := context.WithCancel(ctx) // for a connection; in vain once one has ended
	defer cancel()
	var group parallel.Group
	for range renewers {
		group.Go(func() {
			defer cancel()
			for more := true; more; {
				more = b.renewSome(ctx, waiting)
			}
		})
	}
	group.Wait()
	if b.answered == 0 {
		return nil, b.err
	}
	return b.statuses, nil
}

// renewSome renews entries over one connection, until none is left or one fails. It
// reports whether to go on after that one.
func (b *renewal) renewSome(ctx, waiting context.Context) bool {
	at, try := -1, 0 // the entry in work
	some := func(_ context.Context, on Conn) error {
		for {
			if at < 0 {
				if at, try = b.take(), 1; at < 0 {
					return nil
				}
			}
			status, err := b.renew(ctx, on, &b.batch[at])
			if err != nil {
				return err
			}
			b.answer(at, status)
			at = -1
		}
	}
	err := b.write(waiting, "renew", some)
	// An entry that was begun starts again if it lost a race, or if its connection was
	// closed and another renewer ended meanwhile.
	for at >= 0 && errors.Is(err, store.ErrBusy) && try < maxTries && pause(ctx, try) {
		try++
		err = b.write(ctx, "renew", some)
	}
	if err == nil || at < 0 && ctx.Err() == nil && waiting.Err() != nil {
		return false
	}
	err = b.Dialect.Fail("renew", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil || errors.Is(err, store.ErrUnknown) { // the weakest of all: any entry may have been renewed
		b.err = err
	}
	others := at >= 0 && b.taken < len(b.batch) && ctx.Err() == nil
	return others && (errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrUnknown))
}

// take returns the number of an entry to renew, or -1.
func (b *renewal) take() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken == len(b.batch) {
		return -1
	}
	b.taken++
	return b.taken - 1
}

func (b *renewal) answer(at int, status store.RenewStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.statuses[at] = status
	b.answered++
}
