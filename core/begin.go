package reprise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/internal/bounds"
	"github.com/reprise-go/reprise/core/store"
)

// Operation names an operation that runs once. Scope, Key and Endpoint make its
// [store.ID]. These three strings are not kept after Begin returned, so they may be views
// into buffers that are used again.
type Operation struct {
	// Scope is the authenticated principal that the key belongs to. Equal keys of
	// different scopes are different operations. It is never empty: callers that share
	// one key space between principals choose a name for it.
	Scope string

	// Key is the key from the client, decoded, or the ID of a message; without one, a digest
	// of its content, with the window in which equal messages are one as the Retention.
	// Never empty. Its length and its bytes are free: stores get a digest.
	Key string

	// Endpoint distinguishes operations where clients use one key for several. It is
	// usually empty.
	Endpoint string

	// Fingerprint is the digest of the request's content. The same key with another
	// fingerprint is a [Mismatch].
	Fingerprint store.Fingerprint

	// Preset decides how failures and lapsed attempts are treated. Like Retention and
	// Horizon it is kept in the record from its claim on: a record is judged by the policy
	// that claimed it.
	Preset Preset

	// Retention is how long a result is replayed, counted from its completion by the
	// store's clock: 1 ms to 10 years. Zero is the engine's default. With AtMostOnce choose
	// it, together with the Horizon, longer than Config.MaxRun and Lease, which Begin does
	// not check: an attempt that never completed is remembered from its claim for as long.
	Retention time.Duration

	// Horizon is for operations that must not run again after their retention either: how
	// much longer they are remembered. When the retention of a completed record has ended,
	// the store deletes the result, and Begin returns [Expired] until the horizon has ended
	// too; then the key is new. An attempt that never completed is remembered as long.
	// Together they are 10 years at most. Zero ends the memory with the retention;
	// otherwise at least 1 ms.
	Horizon time.Duration

	// MaxAttempts is the attempt number from which on a lapsed record is not taken over
	// any more. Released attempts do not count. Zero is unlimited.
	MaxAttempts int

	// FailOpen runs the operation without a claim when its claim, with all its repeats,
	// could not reach the server (ErrUnavailable or ErrUnknown), and this process knows
	// nothing of the key: see [Attempt.Unprotected]. Then only this process excludes
	// duplicates, and the operation may run twice. Begin returns InProgress instead beside
	// an attempt of this process that has not ended, a completion or release in the
	// background, and an attempt that the call saw in progress before. An exhausted pool or
	// queue (ErrBusy) is no reason to run, and neither is a store that panics or breaks its
	// contract: it was reached. FailOpen cannot be combined with AtMostOnce, a Horizon or
	// Transactional.
	FailOpen bool

	// Transactional lets the handler write in a transaction of the store, which commits with
	// the result or not at all: the package of the store says how a handler gets it. It
	// begins when the handler asks for it, so that a handler which does not costs no
	// connection. If the lease is lost, the effects are rolled back. The store must be a
	// [store.Transactor].
	Transactional bool

	// Label names the policy in events and, for operators, in the record: at most
	// [store.MaxLabel] bytes of printable ASCII. It must not contain data of a client.
	// [Engine.Declare] makes its metrics begin at zero.
	Label string

	// Description tells operators about the request, in its record: its route, its tenant,
	// its trace. It has up to [store.MaxDescription] bytes: a longer one is cut and ends in
	// "...". Each character that is not printable ASCII becomes a "?". Begin copies it. It
	// must not contain the key, nor anything else that is not for operators.
	Description string

	// Reads says that the caller reads the payload of a Replayed result before it counts as
	// one, and then says by [Result.Read] whether it could. Without it Begin counts.
	Reads bool

	// Wait is how long Begin may wait for another attempt to end before it answers
	// InProgress. Zero does not wait.
	Wait time.Duration
}

// Preset decides how both failures and lapsed attempts are treated.
type Preset uint8

const (
	// Recoverable lets the next request run again after a failure, and take over a lapsed
	// record. Handlers see the attempt number. It suits handlers that may run again, and
	// those that pass derived keys downstream (see [AttemptView.Key]).
	Recoverable Preset = iota

	// AtMostOnce keeps failures and replays them, and refuses a lapsed record until an
	// operator resolves it or its retention ends.
	AtMostOnce
)

// String returns the preset as it appears in logs.
func (p Preset) String() string {
	if p == AtMostOnce {
		return "at-most-once"
	}
	return "recoverable"
}

// validate checks every field but Key, which Begin checks last.
func (op *Operation) validate() error {
	switch {
	case op.Scope == "":
		return fmt.Errorf("%w: Operation.Scope is empty", store.ErrInvalid)
	case op.Preset > AtMostOnce:
		return fmt.Errorf("%w: Operation.Preset is %d, which is not a preset", store.ErrInvalid, op.Preset)
	case op.MaxAttempts < 0:
		return fmt.Errorf("%w: Operation.MaxAttempts is %d, want 0 or more", store.ErrInvalid, op.MaxAttempts)
	case op.FailOpen && op.Preset == AtMostOnce:
		return fmt.Errorf("%w: Operation.FailOpen cannot be combined with AtMostOnce, which it would break", store.ErrInvalid)
	case op.FailOpen && op.Horizon != 0:
		return fmt.Errorf("%w: Operation.FailOpen cannot be combined with Horizon, whose operations must never run again", store.ErrInvalid)
	case op.FailOpen && op.Transactional:
		return fmt.Errorf("%w: Operation.FailOpen cannot be combined with Transactional, whose effects commit with the claim", store.ErrInvalid)
	case op.Label == store.ProbeLabel:
		return fmt.Errorf("%w: Operation.Label is %q, whose records no listing shows", store.ErrInvalid, op.Label)
	case op.Wait < 0:
		return fmt.Errorf("%w: Operation.Wait is %v, want 0 or more", store.ErrInvalid, op.Wait)
	}
	if err := bounds.Text("Operation.Label", op.Label, store.MaxLabel); err != nil {
		return err
	}
	return bounds.Remembered("Operation", op.Retention, op.Horizon)
}

// Result is the result of [Engine.Begin].
type Result struct {
	Outcome Outcome
	Attempt *Attempt // of Claimed and Unprotected: run it, and end it by Complete or Release
	Payload []byte   // of Replayed; it must not be modified

	// Remaining, of InProgress, is the rest of the other attempt's lease, from the store. It
	// is zero where the store was not asked, because the attempt runs in this process or
	// another call asked a moment ago.
	Remaining time.Duration

	unread subject // of Replayed, where Read is to be called
}

// Read counts a Replayed result of an operation with Operation.Reads, and notifies the
// observer. Call it once, from the goroutine of the request, which Close does not wait
// for; a second call, and one for another result, has no effect. The annotation that the
// payload has becomes that of the [Event]. An err says that the payload is unreadable:
// then the outcome becomes Corrupt, and the error wraps [store.ErrCorrupt].
func (r *Result) Read(annotation string, err error) error {
	s := r.unread
	if r.unread = (subject{}); s.engine == nil {
		return err
	}
	if err == nil {
		s.answer(Event{Outcome: Replayed, Annotation: annotation}, nil)
		return nil
	}
	if !errors.Is(err, store.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	*r = Result{Outcome: Corrupt}
	s.observe(Event{Kind: EventStoreError, Err: err})
	s.answer(Event{Outcome: Corrupt, Err: err}, nil)
	return err
}

// Begin claims op and returns how to go on. It takes one round trip to the store, or none
// when this process knows the outcome: simultaneous duplicates share one claim.
//
// The claim is bounded by Config.ClaimTimeout and not by ctx: a client disconnect does
// not cancel it. With op.Wait, Begin waits for another attempt to end until ctx ends or
// op.Wait has passed, and then returns InProgress. Inside of a run of op itself, with a
// context of that run, it returns InProgress at once, or Mismatch for another
// fingerprint. The context of the attempt carries the values of ctx, and neither its
// deadline nor its cancellation.
//
// An error means that the outcome is unknown and the operation must not run. The outcome
// is then KeyMissing for an operation without a key and Failed for one with another field
// out of its range, both with [store.ErrInvalid], Corrupt for a record that cannot be
// read, and otherwise Unavailable: the failure of the store, or [store.ErrClosed] after
// Close. A claim that may have been written anyway is released in the background.
func (e *Engine) Begin(ctx context.Context, op Operation) (res Result, err error) {
	op.Retention = cmp.Or(op.Retention, e.cfg.Retention)
	outcome, err := Failed, op.validate()
	switch {
	case err != nil:
	case op.Transactional && e.Transacts() != nil:
		err = fmt.Errorf("Operation.Transactional: %w", e.Transacts())
	case op.Key == "":
		outcome, err = KeyMissing, fmt.Errorf("%w: Operation.Key is empty", store.ErrInvalid)
	}
	if err != nil {
		e.Refuse(ctx, op.Label, outcome, err)
		return Result{Outcome: outcome}, err
	}
	if !e.work.begin() {
		e.Refuse(ctx, op.Label, Unavailable, store.ErrClosed)
		return Result{Outcome: Unavailable}, store.ErrClosed
	}
	defer func() { // also when the store ends the goroutine
		if res.Attempt == nil {
			e.work.done()
		}
	}()
	e.maintenance.start()
	return e.begin(ctx, &op)
}

// begin finds the result for the operation, counts it, and notifies the observer.
func (e *Engine) begin(ctx context.Context, op *Operation) (res Result, err error) {
	at := now()
	c := newCall(ctx, e, op, at)
	answered, returned := false, false
	defer func() { //nolint:contextcheck // the release is bounded by the engine, not by its client
		switch {
		case !answered: // the store or the observer ended the goroutine
			c.answer(Event{Outcome: Unavailable, Err: errNoReturn}, nil)
		case !returned && res.Attempt != nil: // the observer did, and no handler will run
			e.work.retain() // the attempt ends, and Begin ends too
			_ = res.Attempt.Release()
		}
	}()
	if res.Outcome = c.outcomeInside(ctx); res.Outcome == 0 {
		res, err = c.look(at) //nolint:contextcheck // bounded by the engine, not by its client
		if err == nil && res.Outcome == InProgress && op.Wait > 0 {
			waiting := sinceStart()
			res, err = c.wait(ctx, op.Scope, op.Wait)
			c.waited = sinceStart() - waiting
		}
	}
	if err != nil {
		switch f, _ := classify(err); {
		case c.failOpen && c.seen != 0 && f.unreachable: // this process itself knows of the key
			res, err = Result{Outcome: c.seen}, nil
		case errors.Is(err, store.ErrCorrupt):
			res.Outcome = Corrupt
		case errors.Is(err, store.ErrInvalid):
			res.Outcome = Failed
		default:
			res.Outcome = Unavailable
		}
	}
	answered = true
	if res.Outcome == Replayed && op.Reads {
		res.unread = c.subject
	} else {
		c.answer(Event{Outcome: res.Outcome, Err: err}, res.Attempt)
	}
	returned = true
	return res, err
}

// outcomeInside returns the outcome of an operation that begins inside its own run, with
// a context of that: it would wait for itself, or take over from itself. It is zero
// anywhere else.
func (c *call) outcomeInside(ctx context.Context) Outcome {
	view, _ := AttemptFrom(ctx)
	c.around = view.a
	for a := c.around; a != nil && a.open(); a = a.around {
		switch {
		case a.engine != c.engine || a.id != c.id:
		case a.fingerprint != c.fingerprint:
			return Mismatch
		default:
			return InProgress
		}
	}
	return 0
}

// wait waits for another attempt to end. It answers InProgress when the time is up, a
// limit is reached, or ctx has ended.
func (c *call) wait(ctx context.Context, scope string, patience time.Duration) (Result, error) {
	c.seen = InProgress
	list := &c.engine.waiters
	key := queueKey{id: c.id, fingerprint: c.fingerprint, maxAttempts: c.maxAttempts, failOpen: c.failOpen}
	scope = strings.Clone(scope) // it stays a key of the map while other callers of the scope wait
	w := make(waiter)
	q, ok := list.join(key, scope, w)
	if !ok {
		return Result{Outcome: InProgress}, nil
	}
	defer list.leave(scope, q, w)

	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-w:
		return c.poll(ctx, patient, q)
	case <-q.done:
		return q.result, q.err
	case <-patient.Done():
		select {
		case <-q.done: // both are ready: prefer the result
			return q.result, q.err
		default:
			return Result{Outcome: InProgress}, nil
		}
	case <-c.engine.work.closing:
		return Result{}, store.ErrClosed
	}
}

// poll asks as the head of a queue until the result is another than InProgress, or its
// client's patience ends.
func (c *call) poll(client, patient context.Context, q *queue) (Result, error) {
	e := c.engine
	c.waiting = true
	// The watch starts before the first look, so that no change is missed between the
	// two.
	changed, stop := e.store.watch(patient, c.id)
	defer stop()
	for every := firstPoll; ; every = min(2*every, longestPoll) {
		switch {
		case e.work.isClosing():
			return Result{}, store.ErrClosed
		case patient.Err() != nil:
			return Result{Outcome: InProgress}, nil
		}
		res, err := c.look(now()) //nolint:contextcheck // bounded by the engine, not by its client
		switch {
		case err == nil && res.Outcome == InProgress:
		case res.Attempt == nil:
			e.waiters.answer(q, res, err)
			return res, err
		case client.Err() != nil: // the client has left
			res.Attempt.releaseUnrun() //nolint:contextcheck // bounded by the engine, not by its client
			return Result{Outcome: InProgress}, nil
		default:
			return res, nil
		}
		next := time.NewTimer(jitter(every))
		select {
		case <-next.C:
		case <-q.wake:
		case _, open := <-changed:
			if !open {
				changed = nil
			}
		case <-patient.Done():
		case <-e.work.closing:
		}
		next.Stop()
	}
}
