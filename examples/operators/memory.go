package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// memory replaces Redis on a machine without it. Other processes cannot share its
// records, so an engine of this process crashes instead of a process, and each of its
// records is readable, so the unreadable one is simulated.
type memory struct {
	*memstore.Store

	unreadable atomic.Pointer[store.ID]
}

func newMemory() *memory { return &memory{Store: memstore.New()} }

func (*memory) Close() error { return nil }

func (m *memory) crashed() string {
	return "There is no redis-server to use, so an engine of this process crashed: its link to the store was cut while it ran an order."
}

// crash cuts the links of the second instance, to the store and to its clients, and gives
// it no time to end its requests.
func (m *memory) crash(ctx context.Context, during func(url string) error) error {
	st, link := faultstore.New(m)
	a, err := serveShop(ctx, io.Discard, anyPort, st)
	if err != nil {
		return err
	}
	err = during(a.url)
	for _, op := range []faultstore.Op{faultstore.Claim, faultstore.Renew, faultstore.Complete, faultstore.Release} {
		link.Always(op, faultstore.FailBefore(store.ErrUnavailable))
	}
	now, cancel := context.WithCancel(ctx)
	cancel()
	_ = a.guard.Close(now) // it leaves operations unfinished, as it should
	close(a.slow)
	return errors.Join(err, a.server.Close())
}

func (m *memory) spoil(_ context.Context, id store.ID) error {
	m.unreadable.Store(&id)
	return nil
}

func (m *memory) cannotRead(id store.ID) bool {
	unreadable := m.unreadable.Load()
	return unreadable != nil && *unreadable == id
}

// unreadable is the simulated record as an operator sees it.
func unreadable(id store.ID) store.Record {
	return store.Record{ID: id, State: store.StateUnreadable, Fence: 1}
}

// Claim implements [reprise.Store].
func (m *memory) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	if m.cannotRead(r.ID) {
		return store.ClaimResult{}, fmt.Errorf("%w: of another release", store.ErrCorrupt)
	}
	return m.Store.Claim(ctx, r)
}

// Inspect implements [store.Inspector].
func (m *memory) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	if m.cannotRead(id) {
		return unreadable(id), nil
	}
	return m.Store.Inspect(ctx, id)
}

// List implements [store.Inspector]. The unreadable record is on the first page, where
// the few records of this program leave room for it.
func (m *memory) List(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := m.Store.List(ctx, q)
	if id := m.unreadable.Load(); err == nil && id != nil && q.After == "" {
		record := unreadable(*id)
		if q.Selects(&record, time.Now()) {
			page.Records = append(page.Records, record)
		}
	}
	return page, err
}

// Resolve implements [store.Inspector].
func (m *memory) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if !m.cannotRead(id) {
		return m.Store.Resolve(ctx, id, r)
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if seen := unreadable(id); r.State != seen.State || r.Fence != seen.Fence {
		return store.ErrRecordChanged
	}
	m.unreadable.Store(nil)
	return nil
}
