// Package memstore keeps idempotency records in the memory of one process.
//
//	engine, err := reprise.New(memstore.New(), reprise.Config{})
//
// It is a complete [store.Store]: exclusion, fencing, lapse and takeover, retention,
// and replay of the same bytes hold as in every other store. Its limits follow from the
// place of the records: they cover one process, not its siblings behind the same load
// balancer, and a restart forgets them, so that a key used before the restart is new
// after it.
//
// A store is bounded in records and in bytes (see [Bounds], and [Store.Usage] for its
// usage). It never evicts a live or valid record: when it is full, claims of new keys are
// refused with [store.ErrFull] until records reach the end of their retention. It starts
// no goroutine and needs no Close; records past their retention are unseen at once, and
// deleted by later claims or by Purge.
//
// Time is the monotonic clock, so that setting the wall clock moves no deadline.
package memstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// The bounds of a store made by [New], and of a zero field of [Bounds].
const (
	defaultRecords = 1_000_000
	defaultBytes   = 256 << 20
)

// Bounds limits the size of a store. A claim that would exceed it is refused with
// [store.ErrFull], unless the store has a record of its key.
//
// No scope can fill a store: one that is alone gets at most nine tenths of each bound,
// and in general at most nine times the room that is free.
type Bounds struct {
	// Records is how many records the store holds, in any state. The default is 1,000,000.
	Records int

	// Bytes is how much memory the records take: their payloads and descriptions, and 400
	// bytes for each. The default is 256 MiB. It holds about 190,000 records with payloads
	// of 1 KiB, and about 410,000 with 256 bytes. It is checked when a key is claimed and
	// never when an attempt completes, because to refuse the response of an operation that
	// ran would make its retry run again. So the attempts that were running when the bound
	// was reached may exceed it by their payloads.
	//
	// The process needs more than that: the collector lets the heap grow to about twice the
	// memory in use before it runs, and returns memory to the system late. Set GOMEMLIMIT
	// where that matters.
	Bytes int64
}

// recordOverhead is the size of a record without its payload, in bytes: the record
// itself, its entries in the index and in the order of expiry, and its scope.
const recordOverhead = 400

// Store is a [store.Store] in memory, with the abilities [store.Waiter],
// [store.Inspector], [store.Purger] and [store.Meter]. It is safe for concurrent
// use. Make one with [New] or [NewBounded].
type Store struct {
	epoch  time.Time    // the zero of the store's clock
	ahead  atomic.Int64 // how far Advance moved the clock
	usage  usage
	shards [shardCount]shard
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Waiter    = (*Store)(nil)
	_ store.Inspector = (*Store)(nil)
	_ store.Purger    = (*Store)(nil)
	_ store.Meter     = (*Store)(nil)
)

// New returns an empty store with the default bounds.
func New() *Store {
	return build(Bounds{Records: defaultRecords, Bytes: defaultBytes})
}

// NewBounded returns an empty store with the given bounds. It fails with
// [store.ErrInvalid] when one is negative.
func NewBounded(b Bounds) (*Store, error) {
	if b.Records < 0 {
		return nil, fmt.Errorf("%w: memstore.Bounds.Records is %d, want 0 (the default) or more", store.ErrInvalid, b.Records)
	}
	if b.Bytes < 0 {
		return nil, fmt.Errorf("%w: memstore.Bounds.Bytes is %d, want 0 (the default) or more", store.ErrInvalid, b.Bytes)
	}
	if b.Records == 0 {
		b.Records = defaultRecords
	}
	if b.Bytes == 0 {
		b.Bytes = defaultBytes
	}
	return build(b), nil
}

func build(b Bounds) *Store {
	s := &Store{epoch: time.Now(), usage: usage{bounds: b}}
	for i := range s.shards {
		s.shards[i].init(&s.usage, s.epoch)
	}
	return s
}

// IgnoresValues tells the engine that the store reads no value of a context.
func (s *Store) IgnoresValues() store.Store { return s }

// now reads the store's clock. An operation reads it under the lock of its shard, so that
// the readings of one ID are in the order of its operations.
func (s *Store) now() instant { return time.Since(s.epoch) + time.Duration(s.ahead.Load()) }

// Advance moves the clock of the store forward by d, for tests: leases lapse and
// retentions end without a wait. The clocks of engines do not move, so an attempt that
// runs meanwhile loses its lease, which its engine notices when it renews it. Advance
// panics if d is negative.
func (s *Store) Advance(d time.Duration) {
	if d < 0 {
		panic("memstore: Advance by a negative duration")
	}
	s.ahead.Add(int64(d))
}

// shard returns the part of the store that keeps id. An ID is a digest, so its first byte
// spreads well.
func (s *Store) shard(id store.ID) *shard { return &s.shards[id[0]%shardCount] }

// checkContext refuses a call whose context has already ended. No operation waits, so the
// context is not checked later.
func checkContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return nil
}
