package reprise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// Record is [store.Record], a record of a [Store], as [Engine.Reconcile] shows it.
type Record = store.Record

// Reconciled is the result of [Engine.Reconcile]. Each record is counted once, or more
// often if the listing shows it again because it changed; those that a call whose context
// ended did not get to are not.
type Reconciled struct {
	Executed    int // have a result now
	NotExecuted int // are forgotten: the next request runs
	NotKnown    int // are left for a later call
	Changed     int // were claimed, completed or resolved by others meanwhile, and are left to them
	Failed      int // the question or the resolution failed; the error says why
}

const (
	reconcilePage   = 100              // records of one listing
	reconcileAtOnce = 4                // questions
	reconcileBound  = 30 * time.Second // of a question, and of each call of the store
	reconcileErrors = 100              // that the error of a call has
)

// Reconcile asks about the operations with this label whose outcome is unknown, and
// resolves those that ask has an answer for, so that no operator has to. It is for the
// functions of package job; requests have Guard.Reconcile of package protocol. It reads
// all records of the store once, in parts: call it every minute or so, with a context
// that has no deadline, because a call that ends early leaves the last records out.
//
// Give the operations a label of their own ([Operation].Label; an empty one is refused):
// whatever has it in this store is asked about, by whichever guard, job or service. A
// record is asked about if its handler said Unknown, or ran for a lease longer than
// Config.MaxRun, or if its lease lapsed, such as that of a process that died, with either
// preset; and if its last claim is older than olderThan, by the store's clock. Make that
// longer than an attempt may take, plus the time for which the downstream system may
// still execute what it received: 1 ms to 10 years.
//
// The function ask finds out, such as from the bank, whether the last attempt of r
// executed its operation. [store.Record.Key] is the key that the attempt passed
// downstream, and r.Reason says why its outcome is unknown. It returns one of
//
//	executed:       &store.Resolution{Payload: payload}
//	not executed:   &store.Resolution{Forget: true}
//	not known yet:  nil
//
// A payload is the result that every retry gets, for the retention of the record's policy
// unless the resolution has another: see EncodeResult of package job. Answer "not
// executed" only if nothing that the attempt sent can still be executed. An attempt whose
// r.Reason is "ran longer than MaxRun" may still run, and send, whatever the age of its
// record: leave that to an operator, unless its calls end with its context.
//
// ask is called by up to four goroutines at once, with a context that ends after 30 s,
// and must return then. A panic of ask is an error of its record.
//
// A resolution is fenced: a record that changed after it was listed, by a late attempt, a
// takeover, an operator or the reconciler of another process, stays as it is and counts
// as Changed. So any number of processes may reconcile one store, though they ask the
// same questions. The observer and the log get each resolution as [EventResolved].
//
// The error joins those of the first hundred records that count as Failed, each with the
// first digits of the record's ID and without any key; a later call asks about them
// again. If the store's reply was lost ([store.ErrUnknown]), such a record may be
// resolved all the same. The error wraps [store.ErrInvalid] for a store without an
// Inspector or an invalid argument, the error of a listing, and the cause of ctx when
// that has ended: the counts are then those until there.
func (e *Engine) Reconcile(ctx context.Context, label string, olderThan time.Duration, ask func(ctx context.Context, r Record) (*store.Resolution, error)) (Reconciled, error) {
	inspector, ok := store.As[store.Inspector](e.store.store)
	switch {
	case ask == nil:
		return Reconciled{}, fmt.Errorf("%w: Reconcile needs a function to ask", store.ErrInvalid)
	case label == "":
		return Reconciled{}, fmt.Errorf("%w: Reconcile needs a label: the operations of other policies may have none", store.ErrInvalid)
	case !ok:
		return Reconciled{}, fmt.Errorf("%w: this store has no Inspector, so its records cannot be reconciled", store.ErrInvalid)
	}
	if err := bounds.Duration("olderThan", olderThan); err != nil {
		return Reconciled{}, err
	}
	x := reconciling{engine: e, inspector: inspector, ask: ask}
	q := store.Query{States: store.States(store.StateUnknown, store.StateLapsed), Label: label, OlderThan: olderThan, Limit: reconcilePage}
	for more := true; more && ctx.Err() == nil; more = q.After != "" {
		var page store.Page
		err := bounded(ctx, func(ctx context.Context) (err error) {
			page, err = inspector.List(ctx, q)
			return err
		})
		if err != nil {
			x.errs = append(x.errs, fmt.Errorf("reprise: list records to reconcile: %w", err))
			break
		}
		x.page(ctx, page.Records)
		q.After = page.Next
	}
	if ctx.Err() != nil {
		x.errs = append(x.errs, fmt.Errorf("reprise: reconcile: %w", context.Cause(ctx)))
	}
	return x.done, errors.Join(x.errs...)
}

// reconciling is one call of [Engine.Reconcile].
type reconciling struct {
	engine    *Engine
	inspector store.Inspector
	ask       func(context.Context, Record) (*store.Resolution, error)

	mu   sync.Mutex
	done Reconciled
	errs []error
}

// bounded returns the error of a call of the store.
func bounded(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, reconcileBound)
	defer cancel()
	return apart(func() (err error) {
		defer classified(&err)
		return call(ctx)
	})
}

// page asks about the records of a page, until ctx ends.
func (x *reconciling) page(ctx context.Context, records []Record) {
	room := make(chan struct{}, reconcileAtOnce)
	var asking sync.WaitGroup
	defer asking.Wait()
	for _, r := range records {
		room <- struct{}{}
		if ctx.Err() != nil {
			return
		}
		asking.Go(func() {
			defer func() { <-room }()
			x.reconcile(ctx, r)
		})
	}
}

// reconcile asks about a record, resolves it and counts it.
func (x *reconciling) reconcile(ctx context.Context, r Record) {
	answer, err := x.question(ctx, r)
	changed := false
	if err == nil && answer != nil {
		err = x.resolve(ctx, &r, *answer)
		changed = errors.Is(err, store.ErrRecordChanged)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case changed:
		x.done.Changed++
	case err != nil:
		if x.done.Failed++; x.done.Failed <= reconcileErrors {
			x.errs = append(x.errs, fmt.Errorf("reprise: reconcile the record %s: %w", r.ID.Short(), err))
		}
	case answer == nil:
		x.done.NotKnown++
	case answer.Forget:
		x.done.NotExecuted++
	default:
		x.done.Executed++
	}
}

// question asks about a record, in a goroutine of its own, which ask may end.
func (x *reconciling) question(ctx context.Context, r Record) (answer *store.Resolution, err error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileBound)
	defer cancel()
	err = apart(func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the function that was asked panicked: %v", p)
			}
		}()
		answer, err = x.ask(ctx, r)
		return err
	})
	return answer, err
}

// resolve resolves a record, unless it changed since it was listed, and reports that.
func (x *reconciling) resolve(ctx context.Context, r *Record, answer store.Resolution) error {
	if !answer.Forget && len(answer.Payload) == 0 {
		return fmt.Errorf("%w: the resolution has neither Forget nor a Payload", store.ErrInvalid)
	}
	answer.State, answer.Fence = r.State, r.Fence
	answer.Retention = cmp.Or(answer.Retention, r.Retention)
	if err := bounded(ctx, func(ctx context.Context) error { return x.inspector.Resolve(ctx, r.ID, answer) }); err != nil {
		return err
	}
	reason := "the last attempt executed it"
	if answer.Forget {
		reason = "the last attempt did not execute it"
	}
	x.engine.Report(ctx, Event{
		Kind: EventResolved, Label: r.Label, ID: r.ID, Attempt: r.Attempt, Fence: r.Fence,
		State: r.State, Forgotten: answer.Forget, Reason: reason, Operator: "reconciler",
	})
	return nil
}
