package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// ErrNotAudited says that a resolution was not made because it could not be logged.
var ErrNotAudited = errors.New("reprise: the audit log cannot be written, so nothing was changed")

// Resolution is the decision of an operator about a record. See [Resolve].
type Resolution struct {
	ID store.ID

	// State and Fence are those of the record that the operator saw.
	State store.RecordState
	Fence uint64

	// Answer is the response that every retry gets from now on, for Retention: zero is as
	// long as the policy of the record says.
	Answer    protocol.Response
	Retention time.Duration

	// Forget forgets the record instead: the next request with the key runs. RunAgain says
	// that it may run although the record is completed, expired or unreadable, so that the
	// operation may have been done: without it such a record is not forgotten.
	Forget, RunAgain bool

	Reason   string // why, for the audit log; never empty
	Operator string // who, for the audit log; never empty

	// Guards are the policies of this process. An answer that the policy of the record
	// could not replay is refused: see [NextOf].
	Guards []*protocol.Guard

	// Engine, if not nil, reports the resolution to its observer
	// ([reprise.EventResolved]).
	Engine *reprise.Engine
}

// Choices are the decisions that [Resolve] takes about a record.
type Choices struct {
	Answer   bool // it can get an answer
	Forget   bool // it can be forgotten
	RunAgain bool // only by agreeing that its operation may run again: see [Resolution]
}

// ChoicesOf returns the decisions that [Resolve] takes about a record in this state.
func ChoicesOf(state store.RecordState) Choices { return rules[state].Choices }

// rule says how a record in a state can be resolved.
type rule struct {
	Choices

	because string // of a refusal
}

const attempted = "RunAgain is for forgetting one that is completed, expired or unreadable"

// rules is the table of resolutions by the state of the record.
var rules = map[store.RecordState]rule{
	store.StateRunning:    {Choices{}, "its attempt still runs"},
	store.StateLapsed:     {Choices{Answer: true, Forget: true}, attempted},
	store.StateUnknown:    {Choices{Answer: true, Forget: true}, attempted},
	store.StateCompleted:  {Choices{Forget: true, RunAgain: true}, "it can only be forgotten, and the operation may then run a second time"},
	store.StateExpired:    {Choices{Forget: true, RunAgain: true}, "it can only be forgotten, and the operation may then run a second time"},
	store.StateUnreadable: {Choices{Forget: true, RunAgain: true}, "it can only be forgotten, and the operation may have been done"},
}

// Resolve ends a record by the decision of an operator. It is the one way to resolve a
// record of requests: the console and the program call it.
//
// It logs the decision and then carries it out, each with a line of the audit log: level
// WARN, or ERROR with the error of a change that failed. The line before the change must
// be durable when Handle returns. If Handle fails, the record is left as it is, and the
// error wraps [ErrNotAudited]. A line has the record and the decision, and no part of the
// answer but its status and the size of its body. A line after the change that cannot be
// written is missing: the one before it says what was tried.
//
// The other errors wrap [store.ErrInvalid] for a decision that [Resolution.Check]
// refuses, [store.ErrRecordChanged] for a record that is not the one that the operator
// saw any more, or the error of the store. Only [store.ErrUnknown] and
// [store.ErrNotReplicated] leave open whether the record was changed; after any other
// error it was not.
func Resolve(ctx context.Context, in store.Inspector, r Resolution, audit slog.Handler) error {
	record, err := in.Inspect(ctx, r.ID)
	if errors.Is(err, store.ErrUnknown) {
		err = fmt.Errorf("%w: the record could not be read: %v", store.ErrUnavailable, err) //nolint:errorlint // no change is in doubt
	}
	if err != nil {
		return err
	}
	change, _, err := r.change(&record)
	if err != nil {
		return err
	}
	if err := audit.Handle(ctx, r.line(&record, "reprise: resolving a record", nil)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAudited, err)
	}
	err = in.Resolve(ctx, r.ID, change)
	ctx, done := context.WithoutCancel(ctx), "reprise: a record was resolved"
	if err != nil {
		done = "reprise: a record was not resolved"
	}
	_ = audit.Handle(ctx, r.line(&record, done, err)) // the one before the change is durable
	if err == nil && r.Engine != nil {                // elsewhere the audit log has it
		r.Engine.Report(ctx, reprise.Event{
			Kind: reprise.EventResolved, Label: record.Label, ID: record.ID, Attempt: record.Attempt, Fence: record.Fence,
			State: record.State, Forgotten: r.Forget, Reason: r.Reason, Operator: r.Operator,
		})
	}
	return err
}

// Check returns the client's next answer, or why Resolve would refuse the decision
// about a record as it is now, for a program that asks its operator to confirm. It
// makes no change.
func (r *Resolution) Check(record *store.Record) (Next, error) {
	_, next, err := r.change(record)
	return next, err
}

// change returns the change of a record, and the client's next answer after it.
func (r *Resolution) change(record *store.Record) (change store.Resolution, next Next, err error) {
	if err := r.allowed(record); err != nil {
		return change, next, err
	}
	change = store.Resolution{State: record.State, Fence: record.Fence, Forget: r.Forget, Retention: cmp.Or(r.Retention, record.Retention)}
	if r.Forget {
		err = change.Validate()
		return change, NextOf(nil), err
	}
	if change.Payload, err = Encode(r.Answer); err != nil {
		return change, next, err
	}
	resolved := *record
	resolved.State, resolved.Payload, resolved.Resolved = store.StateCompleted, change.Payload, true
	if next = NextOf(&resolved, r.Guards...); next.Code != "" {
		return change, next, r.refuse("is not resolved: its policy could not replay this answer, and retries would get %s", next.Text)
	}
	err = change.Validate()
	return change, next, err
}

// allowed reports why the table of rules does not allow the decision.
func (r *Resolution) allowed(record *store.Record) error {
	rule := rules[record.State]
	switch {
	case record.Fence != r.Fence || record.State != r.State && !(record.State.WasCompleted() && r.State.WasCompleted()):
		return fmt.Errorf("%w: it is %v with the fence %d now, and was seen %v with the fence %d",
			store.ErrRecordChanged, record.State, record.Fence, r.State, r.Fence)
	case r.Forget && !rule.Forget, !r.Forget && !rule.Answer, r.RunAgain && !(r.Forget && rule.RunAgain):
		return r.refuse("is %v: %s", record.State, rule.because)
	case r.Forget && rule.RunAgain && !r.RunAgain:
		return r.refuse("is %v: %s, which needs to be agreed to (RunAgain)", record.State, rule.because)
	case r.Reason == "" || r.Operator == "":
		return r.refuse("is not resolved: the audit log needs a reason and an operator")
	}
	return nil
}

// refusal says why a decision is refused.
type refusal string

func (e refusal) Error() string { return "reprise: " + string(e) }

// Unwrap makes a refusal match [store.ErrInvalid].
func (refusal) Unwrap() error { return store.ErrInvalid }

func (r *Resolution) refuse(format string, args ...any) error {
	return refusal("the record " + r.ID.Short() + " " + fmt.Sprintf(format, args...))
}

// line returns a line of the audit log.
func (r *Resolution) line(record *store.Record, message string, err error) slog.Record {
	level := slog.LevelWarn
	if err != nil {
		level = slog.LevelError
	}
	line := slog.NewRecord(time.Now(), level, message, 0)
	line.AddAttrs(
		slog.String("operator", r.Operator), slog.String("reason", r.Reason), slog.String("id", record.ID.String()),
		slog.String("state", record.State.String()), slog.String("label", record.Label), slog.Int("attempt", record.Attempt),
		slog.Uint64("fence", record.Fence),
	)
	if r.Forget {
		line.AddAttrs(slog.String("action", "forget"))
	} else {
		line.AddAttrs(slog.String("action", "answer"), slog.Int("status", r.Answer.Status), slog.Int("body_bytes", len(r.Answer.Body)))
	}
	if err != nil {
		line.AddAttrs(slog.String("error", err.Error()))
	}
	return line
}
