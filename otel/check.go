package repriseotel

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/reprise-go/reprise/core/store"
)

const (
	checkEvery   = 5 * time.Minute  // between two checks of a store
	checkTimeout = 30 * time.Second // of one
)

// WatchStore reports what the check of a store finds on its server (see [store.Checker]),
// such as memory that is nearly full, under the name of the store's engine, until stop is
// called. The error is the meter's. A store without such a check reports nothing.
//
// The first collection starts the first check, and those of every fifth minute another
// one, in a goroutine that ends within 30 seconds, and before stop returns. After a check
// that failed, the findings of the one before stay, and reprise.store.unchecked is 1.
func (t *Telemetry) WatchStore(name string, st store.Store) (stop func() error, err error) {
	checker, ok := store.As[store.Checker](st)
	if !ok {
		return func() error { return nil }, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &checks{of: checker}
	about := metric.WithAttributeSet(attribute.NewSet(keyEngine.String(name)))
	registered, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		found, failed := c.last(ctx)
		for f, n := range found {
			o.ObserveInt64(t.findings, n, metric.WithAttributes(keyEngine.String(name), keyFinding.String(f.Code), keySeverity.String(f.Severity.String())))
		}
		o.ObserveInt64(t.unchecked, failed, about)
		return nil
	}, t.findings, t.unchecked)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("repriseotel: %w", err)
	}
	return func() error {
		err := registered.Unregister()
		cancel()
		c.mu.Lock()
		c.stopped = true
		c.mu.Unlock()
		c.running.Wait()
		return err
	}, nil
}

// checks are those of one store.
type checks struct {
	of      store.Checker
	running sync.WaitGroup

	mu      sync.Mutex
	began   time.Time               // the last check; zero: none has
	found   map[store.Finding]int64 // how often, without the details
	failed  int64                   // 1: the last check did
	runs    bool                    // a check does
	stopped bool
}

// last returns what the last check found, and starts another one if it is time.
func (c *checks) last(ctx context.Context) (found map[store.Finding]int64, failed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped && !c.runs && time.Since(c.began) >= checkEvery {
		c.began, c.runs = time.Now(), true
		c.running.Go(func() { c.check(ctx) })
	}
	return maps.Clone(c.found), c.failed
}

func (c *checks) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	list, err := c.ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = false
	if err != nil {
		c.failed = 1
		return
	}
	c.failed, c.found = 0, make(map[store.Finding]int64)
	for _, f := range list {
		f.Detail = "" // it may name hosts and users
		c.found[f]++
	}
}

// ask asks the store. A panic of its check is a check that failed.
func (c *checks) ask(ctx context.Context) (list []store.Finding, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check panicked: %v", p)
		}
	}()
	return c.of.Check(ctx)
}
