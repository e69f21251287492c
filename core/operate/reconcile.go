package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// ReconcileConfig bounds a round of [Reconcile]. The zero value is the documented default
// in every field.
type ReconcileConfig struct {
	// Label selects the records of one policy (see
	// [reprise.Operation].Label). The default is all: then ask must know the downstream
	// calls of every policy of the store.
	Label string

	// Lapsed also selects lapsed records, such as those of a process that died. Unknown
	// ones are always selected: their handler said Unknown, or did not return within a
	// lease after Config.MaxRun.
	Lapsed bool

	// OlderThan leaves out records whose last claim is more recent than that, by the
	// store's clock. Make it longer than an attempt may take, plus the time for which the
	// downstream system may still execute what it received: only then does "not executed"
	// stay true. A handler that ignores its context takes any time: see Reconcile. The
	// default is none: no record is left out.
	OlderThan time.Duration

	// After is Reconciled.Next of the previous round; empty begins with the first record.
	After string

	// Limit is how many records a round asks about: 1 to [store.MaxPage]. Default 100.
	Limit int

	// Timeout bounds each call: of ask, and of the store. Default 10 s; 1 ms to 10 years.
	Timeout time.Duration

	// Engine, if not nil, reports each resolution to its observer
	// ([reprise.EventResolved]). Without it they are logged as [NewAuditLog] does.
	Engine *reprise.Engine
}

// Reconciled is the result of a round of [Reconcile]. Each selected record is counted
// once, except those that a round whose context ended did not get to.
type Reconciled struct {
	Executed    int // have a result now
	NotExecuted int // are forgotten: the next request runs
	NotKnown    int // are left for a later round
	Changed     int // were claimed, completed or resolved by others meanwhile, and are left to them
	Failed      int // the question or the resolution failed; the error says why

	// Next is where the next round goes on, for ReconcileConfig.After. It is empty after
	// the last record.
	Next string
}

// Reconcile asks about operations whose outcome is unknown, and resolves those that ask
// has an answer for, so that no operator has to. It makes one round: one call of
// [store.Inspector].List, which reads about 10,000 records of the store at most, and a
// question for each that c selects. A service calls it in a loop:
//
//	for ctx.Err() == nil {
//		round, err := operate.Reconcile(ctx, st, ask, c)
//		// log err
//		if c.After = round.Next; c.After == "" {
//			// all records were seen: wait, such as a minute
//		}
//	}
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
// unless the resolution has another: of a request, a response in the form of [Encode],
// which a guard with Seal.Strict refuses; of a function, that of [job.EncodeResult]. An
// empty one is refused, since both never are. Answer "not executed" only if nothing that
// the attempt sent can still be executed: see OlderThan. An attempt whose r.Reason is
// "ran longer than MaxRun" may still run, and send, whatever the age of its record: leave
// that to an operator, unless its calls end with its context.
//
// ask is called by several goroutines at once, with a context that ends after c.Timeout,
// and must return then. A panic of ask is an error of its record.
//
// A resolution is fenced: a record that changed after it was listed, by a late attempt, a
// takeover, an operator or the reconciler of another process, stays as it is and counts
// as Changed. So any number of processes may reconcile one store, and one that dies in
// the middle has left nothing that the next round does not find. They ask the same
// questions, though, and each reads the whole store: one process is enough.
//
// The error joins those of the records that count as Failed, each with the first digits
// of the record's ID and without any key; a later round asks about them again. It wraps
// [store.ErrInvalid] for a store without an Inspector or an invalid field of c, and the
// cause of ctx when that has ended: then Next repeats the round. If the listing fails,
// the round counts nothing, and the next one begins with the first record.
func Reconcile(ctx context.Context, st store.Store, ask func(ctx context.Context, r store.Record) (*store.Resolution, error), c ReconcileConfig) (Reconciled, error) {
	inspector, ok := store.As[store.Inspector](st)
	switch {
	case ask == nil:
		return Reconciled{}, fmt.Errorf("%w: Reconcile needs a function to ask", store.ErrInvalid)
	case !ok:
		return Reconciled{}, fmt.Errorf("%w: this store has no Inspector, so its records cannot be reconciled", store.ErrInvalid)
	}
	if err := c.complete(); err != nil {
		return Reconciled{}, err
	}
	x := reconciling{inspector: inspector, ask: ask, cfg: c}
	page, err := x.list(ctx)
	if err != nil {
		return Reconciled{}, fmt.Errorf("reprise: list records to reconcile: %w", err)
	}
	x.done.Next = page.Next
	room := make(chan struct{}, questionsAtOnce)
	var asking sync.WaitGroup
	for _, r := range page.Records {
		room <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		asking.Go(func() {
			defer func() { <-room }()
			x.reconcile(ctx, r)
		})
	}
	asking.Wait()
	if ctx.Err() != nil {
		x.done.Next = c.After // the rest of the page is for the next round
		x.errs = append(x.errs, fmt.Errorf("reprise: reconcile: %w", context.Cause(ctx)))
	}
	return x.done, errors.Join(x.errs...)
}

// questionsAtOnce is how many questions of a round are asked at once.
const questionsAtOnce = 4

// complete fills in the defaults and reports the first field that is out of its range,
// as [store.ErrInvalid]. The store checks the others.
func (c *ReconcileConfig) complete() error {
	c.Limit, c.Timeout = cmp.Or(c.Limit, 100), cmp.Or(c.Timeout, 10*time.Second)
	return bounds.Duration("ReconcileConfig.Timeout", c.Timeout)
}

// reconciling is one call of [Reconcile].
type reconciling struct {
	inspector store.Inspector
	ask       func(context.Context, store.Record) (*store.Resolution, error)
	cfg       ReconcileConfig

	mu   sync.Mutex
	done Reconciled
	errs []error
}

// list returns the records of the round.
func (x *reconciling) list(ctx context.Context) (store.Page, error) {
	states := store.States(store.StateUnknown)
	if x.cfg.Lapsed {
		states = store.States(store.StateUnknown, store.StateLapsed)
	}
	ctx, cancel := context.WithTimeout(ctx, x.cfg.Timeout)
	defer cancel()
	return x.inspector.List(ctx, store.Query{
		States: states, Label: x.cfg.Label, OlderThan: x.cfg.OlderThan, After: x.cfg.After, Limit: x.cfg.Limit,
	})
}

// reconcile asks about a record, resolves it and counts it.
func (x *reconciling) reconcile(ctx context.Context, r store.Record) {
	answer, err := x.question(ctx, r)
	if err == nil && answer != nil {
		err = x.resolve(ctx, &r, *answer)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case errors.Is(err, store.ErrRecordChanged):
		x.done.Changed++
	case err != nil:
		x.done.Failed++
		x.errs = append(x.errs, fmt.Errorf("reprise: reconcile the record %s: %w", r.ID.Short(), err))
	case answer == nil:
		x.done.NotKnown++
	case answer.Forget:
		x.done.NotExecuted++
	default:
		x.done.Executed++
	}
}

// question asks about a record.
func (x *reconciling) question(ctx context.Context, r store.Record) (answer *store.Resolution, err error) {
	ctx, cancel := context.WithTimeout(ctx, x.cfg.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the function that was asked panicked: %v", p)
		}
	}()
	return x.ask(ctx, r)
}

// errNoPayload refuses a payload that no retry could read.
var errNoPayload = fmt.Errorf("%w: the resolution has neither Forget nor a Payload", store.ErrInvalid)

// resolve resolves a record, unless it changed since it was listed, and reports that.
func (x *reconciling) resolve(ctx context.Context, r *store.Record, answer store.Resolution) error {
	if !answer.Forget && len(answer.Payload) == 0 {
		return errNoPayload
	}
	answer.State, answer.Fence = r.State, r.Fence
	answer.Retention = cmp.Or(answer.Retention, r.Retention)
	ctx, cancel := context.WithTimeout(ctx, x.cfg.Timeout)
	defer cancel()
	if err := x.inspector.Resolve(ctx, r.ID, answer); err != nil {
		return err
	}
	reason := "the last attempt executed it"
	if answer.Forget {
		reason = "the last attempt did not execute it"
	}
	report(ctx, x.cfg.Engine, r, answer.Forget, "reconciler", reason)
	return nil
}
