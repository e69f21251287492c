package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// memory replaces Redis on a machine without it. Other processes cannot share its
// records, so an engine of this process crashes instead of a process, and each of its
// records is readable, so the unreadable one is simulated.
type memory struct {
	*memstore.Store

	unreadable atomic.Pointer[reprise.ID]
}

func newMemory() *memory { return &memory{Store: memstore.New()} }

func (*memory) Close() error { return nil }

func (m *memory) crashed() string {
	return "There is no redis-server to use, so an engine of this process crashed: its link to the store was cut while it ran an order."
}

// crash cuts the links of the second instance, to the store and to its clients, and gives
// it no time to end what it runs.
func (m *memory) crash(ctx context.Context, during func(url string) error) error {
	store, link := faultstore.New(m)
	a, err := serveShop(ctx, io.Discard, anyPort, store)
	if err != nil {
		return err
	}
	err = during(a.url)
	for _, op := range []faultstore.Op{faultstore.Claim, faultstore.Renew, faultstore.Complete, faultstore.Release} {
		link.Always(op, faultstore.FailBefore(reprise.ErrUnavailable))
	}
	now, cancel := context.WithCancel(ctx)
	cancel()
	_ = a.engine.Close(now) // it leaves operations unfinished, as it should
	close(a.slow)
	return errors.Join(err, a.server.Close())
}

func (m *memory) spoil(_ context.Context, id reprise.ID) error {
	m.unreadable.Store(&id)
	return nil
}

func (m *memory) cannotRead(id reprise.ID) bool {
	unreadable := m.unreadable.Load()
	return unreadable != nil && *unreadable == id
}

// Claim implements [reprise.Store].
func (m *memory) Claim(ctx context.Context, r reprise.ClaimRequest) (reprise.ClaimResult, error) {
	if m.cannotRead(r.ID) {
		return reprise.ClaimResult{}, fmt.Errorf("%w: of another release", reprise.ErrCorrupt)
	}
	return m.Store.Claim(ctx, r)
}

// Inspect implements [reprise.Inspector].
func (m *memory) Inspect(ctx context.Context, id reprise.ID) (reprise.Record, error) {
	if m.cannotRead(id) {
		return reprise.Record{ID: id, State: reprise.StateUnreadable}, nil
	}
	return m.Store.Inspect(ctx, id)
}

// List implements [reprise.Inspector]. The unreadable record is on the first page, where
// the few records of this program leave room for it.
func (m *memory) List(ctx context.Context, q reprise.Query) (reprise.Page, error) {
	page, err := m.Store.List(ctx, q)
	if id := m.unreadable.Load(); err == nil && id != nil && q.After == "" {
		record := reprise.Record{ID: *id, State: reprise.StateUnreadable}
		if q.Selects(&record, time.Now()) {
			page.Records = append(page.Records, record)
		}
	}
	return page, err
}

// Resolve implements [reprise.Inspector].
func (m *memory) Resolve(ctx context.Context, id reprise.ID, r reprise.Resolution) error {
	if !m.cannotRead(id) {
		return m.Store.Resolve(ctx, id, r)
	}
	if !r.Forget || r.Fence != 0 {
		return reprise.ErrRecordChanged
	}
	m.unreadable.Store(nil)
	return nil
}
