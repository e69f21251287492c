package reprise

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// Store keeps the records of an [Engine]: see [store.Store], the contract.
type Store = store.Store

// Engine decides, over one [Store], which request runs an operation and which gets its
// answer. Make one per process and store with [New], and Close it when no request uses it
// any more. Its methods are safe for concurrent use.
type Engine struct {
	cfg         Config
	store       driver
	table       table
	renewer     *renewer
	waiters     waiters
	background  background
	maintenance recurring
	counting    recurring
	stuck       stuckCounter
	observing   observing
	tallies     tallies

	claiming   budget // of Begin
	completing budget // of the work that a result waits for

	// base ends when Close has given up waiting, or all work has ended: it stops the
	// renewer, the background and the maintenance.
	base context.Context
	stop context.CancelFunc

	work openWork
}

// New makes an engine over a store. It starts no goroutine. The error wraps
// [store.ErrInvalid] and names the field of cfg that is out of its range. An engine whose
// MaxRun is unset logs the default.
func New(st store.Store, cfg Config) (*Engine, error) {
	if st == nil {
		return nil, fmt.Errorf("%w: New: the store is nil", store.ErrInvalid)
	}
	unsaid := cfg.MaxRun == 0
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, store: newDriver(st)}
	e.observing.observer, e.observing.log.log = cfg.Observer, cfg.Log
	if unsaid {
		e.observing.log.logger().Info("reprise: handlers are cancelled after MaxRun; set reprise.Config.MaxRun, or -1 for no bound", slog.Duration("max_run", cfg.MaxRun))
	}
	e.work.closing, e.work.idle = make(chan struct{}), make(chan struct{})
	e.claiming.d, e.completing.d = cfg.ClaimTimeout, cfg.CompleteTimeout
	e.base, e.stop = context.WithCancel(context.Background())
	e.renewer = newRenewer(&e.store, cfg.Lease)
	e.waiters.limits = cfg.Waiting
	e.background = background{base: e.base, work: &e.work, timeout: cfg.CompleteTimeout, limits: cfg.Background, wake: make(chan struct{}, 1)}
	e.stuck.init(&e.store, cfg.ClaimTimeout, &e.observing)
	e.maintenance = recurring{base: e.base, log: &e.observing.log, work: e.store.maintain, done: make(chan struct{})}
	e.counting = recurring{base: e.base, log: &e.observing.log, work: e.stuck.work, done: make(chan struct{})}
	return e, nil
}

// Config returns the configuration of the engine with its defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Transacts returns nil if the engine's store can give handlers transactions, and
// otherwise ErrInvalid with the reason: see [Operation].Transactional.
func (e *Engine) Transacts() error {
	if e.store.transactor == nil {
		return fmt.Errorf("%w: the store has no transactions for handlers: use one in an SQL database", store.ErrInvalid)
	}
	return e.store.transactor.Transacts()
}

// Refuse counts a request that its caller refuses before Begin, under the label of the
// policy, and notifies the observer of it. err says why, and may be nil. Call it from the
// goroutine of the request.
func (e *Engine) Refuse(ctx context.Context, label string, outcome Outcome, err error) {
	if outcome < 1 || int(outcome) >= len(outcomeNames) {
		outcome = Failed
	}
	if bounds.Text("label", label, store.MaxLabel) != nil {
		label = ""
	}
	e.tallies.of(label).outcomes[outcome].Add(1)
	event := Event{Outcome: outcome, Counted: true, Label: label, Err: err}
	if e.observing.wants(&event) {
		e.observing.notify(ctx, event)
	}
}

// Declare says that there is a policy with this label, before its first request, which
// may report these kinds of events besides those of the engine. [Stats] then has its
// counts, which are zero, and the observer gets EventDeclared, so that it can make a
// series at zero for each outcome and kind. Metrics that begin with the first lapsed
// request have not increased, and no alert would see it.
//
// The package protocol declares its guards. Call it for the labels of other operations,
// once for each, when the program starts. An invalid label is not declared.
func (e *Engine) Declare(label string, kinds ...*EventKind) {
	if bounds.Text("label", label, store.MaxLabel) != nil {
		return
	}
	e.tallies.of(label)
	if event := (Event{Kind: EventDeclared, Label: label, Kinds: kinds}); e.observing.wants(&event) {
		e.observing.notify(e.base, event)
	}
}

// Report notifies the engine's observer of an event that its caller saw or caused: a
// panic beside a request, or the resolution of a record by an operator. It is not
// counted: see [Engine.Refuse].
func (e *Engine) Report(ctx context.Context, event Event) {
	event.Counted = false
	if e.observing.wants(&event) {
		e.observing.notify(ctx, event)
	}
}

// Close takes no new operations, waits until the attempts that run and the work in the
// background have ended, and stops the engine's goroutines. When ctx ends first it stops
// anyway and returns an error that wraps the cause: handlers that still run are cancelled
// with [store.ErrLeaseLost], and their records lapse; they are not released. An attempt
// that ends after that is recorded if the store takes it within Config.CompleteTimeout.
// Closing again waits again.
func (e *Engine) Close(ctx context.Context) error {
	e.work.close()
	e.background.look()
	var err error
	select {
	case <-e.work.idle:
	case <-ctx.Done():
		if left := e.work.count.Load(); left > 0 {
			err = fmt.Errorf("reprise: closed with unfinished operations (%d): %w", left, context.Cause(ctx))
		}
	}
	e.stop()
	e.claiming.stop()
	e.renewer.abandon()
	e.renewer.wait(ctx)
	e.maintenance.wait(ctx)
	e.counting.wait(ctx)
	e.observing.wait(ctx)
	return err
}

// Stats returns the engine's present work and its counts since it was made.
func (e *Engine) Stats() Stats {
	s := Stats{
		Waiting:           int(e.waiters.total.Load()),
		BackgroundDropped: e.background.dropped.Load(),
		Store:             e.store.usage(),
		Leases:            e.renewer.leases(),
		EventsDropped:     e.observing.dropped.Load(),
		Uncounted:         e.stuck.uncounted.Load(),
	}
	s.Totals, s.Labels = e.tallies.totals()
	e.background.mu.Lock()
	s.Background, s.BackgroundBytes = e.background.held, e.background.bytes
	e.background.mu.Unlock()
	e.observing.mu.Lock()
	s.EventsQueued = len(e.observing.events)
	e.observing.mu.Unlock()
	return s
}

// Stats is the result of [Engine.Stats]. Numbers of type uint64 only grow.
type Stats struct {
	Totals                   // of all labels together
	Labels map[string]Totals // by label: see Operation.Label. From the thousandth on, labels are counted together as "(others)"

	Leases  int // attempts of Running whose lease is kept; the others have none, or lost theirs
	Waiting int // callers that wait for an attempt of another

	Background        int    // completions and releases that the background still has to make
	BackgroundBytes   int64  // of their payloads
	BackgroundDropped uint64 // those that it gave up, or had no room for: their claims lapse

	EventsQueued  int    // events that no request waits for and that the observer has not been given yet
	EventsDropped uint64 // those that there was no room for

	Uncounted bool // this process could not count the stuck records when it last had to, and no other one has counted them since: see [Engine.Stuck]

	Store []store.Usage // the store's use of its slots, connections or memory; nil unless it is a [store.Meter]
}

// Stuck returns how many records of the store are stuck (see [store.Record.Stuck]), also
// those of other processes and of clients that never come back: for each label, and each
// of the two states. Labels that this engine knows are there with zero.
//
// The first call starts the count, as the first operation starts the maintenance of the
// store, which Stuck starts too. One process at a time counts, every five minutes, in
// small steps that take a tenth of the time: the one that holds a lock in the store,
// which another takes over within two minutes when it dies or is closed. All others get
// false, and so does every caller before the first count, after one that failed, and
// where the store cannot be counted, because it is not a [store.Inspector]. Where counts
// fail, [Stats.Uncounted] tells it from the count of another process. Stuck itself does
// not call the store. A process
// that was not asked for ten minutes counts no more before it is asked again: another one
// does, whose count is read.
func (e *Engine) Stuck() (counts []StuckCount, ok bool) {
	if !e.work.begin() {
		return nil, false
	}
	defer e.work.done()
	e.maintenance.start()
	e.stuck.read.Store(int64(sinceStart()))
	e.counting.start()
	found := e.stuck.found.Load()
	if found == nil || now().reached(found.until) {
		return nil, false
	}
	all := make(stuckCounts, len(found.counts))
	if known := e.tallies.known.Load(); known != nil {
		for label := range *known {
			all[label] = [2]int{}
		}
	}
	maps.Copy(all, found.counts)
	return all.list(), true
}

// openWork counts the work that Close waits for: calls to Begin, attempts, and tasks in
// the background.
type openWork struct {
	count   atomic.Int64
	closed  atomic.Bool
	closing chan struct{} // closed by close
	idle    chan struct{} // closed when the count is 0 after that
	once    struct{ closing, idle sync.Once }
}

// begin counts one more piece of work, unless close was called.
func (w *openWork) begin() bool {
	w.count.Add(1) // first: work that close does not see counted must see it closed
	if w.closed.Load() {
		w.done()
		return false
	}
	return true
}

// retain adds a reference for work that is counted already, so it is allowed after close.
func (w *openWork) retain() { w.count.Add(1) }

// done takes back one begin or retain.
func (w *openWork) done() {
	if w.count.Add(-1) == 0 && w.closed.Load() {
		w.once.idle.Do(func() { close(w.idle) })
	}
}

// close refuses new work from now on. It may be called more than once.
func (w *openWork) close() {
	w.retain() // never idle before it has closed
	w.closed.Store(true)
	w.once.closing.Do(func() { close(w.closing) })
	w.done()
}

func (w *openWork) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// recurring is work of an engine with a goroutine, which starts when it is first needed
// and ends in Close: the maintenance of a store, and the count of its stuck records.
type recurring struct {
	base context.Context
	log  *operatorLog
	work func(context.Context) // until base ends; nil: there is none

	started atomic.Bool
	done    chan struct{} // closed when the goroutine has ended
}

// start starts the goroutine unless it was started before, or there is no work.
func (r *recurring) start() {
	if r.work != nil && !r.started.Load() && r.started.CompareAndSwap(false, true) {
		go r.run()
	}
}

func (r *recurring) run() {
	defer close(r.done)
	err := apart(func() (err error) {
		defer classified(&err)
		r.work(r.base)
		return nil
	})
	if err != nil {
		r.log.logger().ErrorContext(r.base, "reprise: the maintenance of the store has ended", slog.Any("error", err))
	}
}

// wait returns when the goroutine, whose context has ended, has gone, or when ctx ends.
func (r *recurring) wait(ctx context.Context) {
	if r.started.Load() {
		await(ctx, r.done)
	}
}
