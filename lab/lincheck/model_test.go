package lincheck

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	reprise "github.com/reprise-go/reprise/core"
)

// never is later than every end of a history.
const never = time.Duration(math.MaxInt64 / 4)

// window is when something happens by the store's clock: not before from, not after to.
type window struct{ from, to time.Duration }

func (w window) plus(d time.Duration) window { return window{w.from + d, min(w.to+d, never)} }

// passed returns whether the end of a span has passed at an instant: one answer, or both
// where the windows do not tell.
func (w window) passed(at window) []bool {
	switch {
	case at.from >= w.to:
		return []bool{true}
	case at.to < w.from:
		return []bool{false}
	default:
		return []bool{true, false}
	}
}

// kind is which operation of a store an operation of a history is.
type kind string

const (
	claim    kind = "claim"
	renew    kind = "renew"
	complete kind = "complete"
	release  kind = "release"
)

// input is a call of a store, with all that a store is told.
type input struct {
	kind      kind
	id        reprise.ID
	owner     reprise.Owner
	print     reprise.Fingerprint
	lease     time.Duration
	retention time.Duration
	takeover  bool
	attempts  int // MaxAttempts
	payload   string
	atomic    bool // the store holds a transaction instead of a lease
	fleeting  bool // an attempt of which its client does not know is ended for it
}

// output is what the call answered, and when it took place.
type output struct {
	at       window
	unknown  bool   // it may have taken place, at any time from at.from on
	refused  string // why it did not take place
	outcome  reprise.Outcome
	attempt  int
	fence    uint64
	lapsed   bool // a claim was granted to its owner without a new lease
	payload  string
	renewal  reprise.RenewStatus
	accepted bool // a completion
}

// record is the state of one ID in the model.
type record struct {
	held, completed bool
	owner           reprise.Owner
	print           reprise.Fingerprint
	attempt         int
	fence, highest  uint64 // of this attempt, 0 if its answer was lost; of any before
	lease, valid    window // their ends
	payload         string
	fleeting        bool // its client does not know of it, so that it may end at any time
}

// seen returns the record as operations see it, if its lease has passed and its validity
// expired.
func (r record) seen(passed, expired bool) record {
	if !r.held || expired && (r.completed || passed) {
		return record{highest: r.highest}
	}
	return r
}

// apply is the sequential meaning of a store: what an operation on a record that is seen
// does, and what it answers. passed says whether the lease has ended.
func (r record) apply(in input, at window, passed bool) (record, output) {
	own := r.held && r.owner == in.owner
	switch in.kind {
	case claim:
		switch {
		case !r.held:
			return r.granted(in, 1, at), output{outcome: reprise.Claimed, attempt: 1}
		case r.print != in.print && !(in.atomic && !r.completed && !own):
			return r, output{outcome: reprise.Mismatch}
		case r.completed:
			return r, output{outcome: reprise.Completed, payload: r.payload}
		case own:
			return r.granted(in, r.attempt, at), output{outcome: reprise.Claimed, attempt: r.attempt}
		case !passed:
			return r, output{outcome: reprise.InProgress}
		case !in.takeover, in.attempts > 0 && r.attempt >= in.attempts:
			return r, output{outcome: reprise.Lapsed}
		default:
			return r.granted(in, r.attempt+1, at), output{outcome: reprise.Claimed, attempt: r.attempt + 1}
		}
	case renew:
		switch {
		case !own:
			return r, output{renewal: reprise.RenewLost}
		case r.completed:
			return r, output{renewal: reprise.RenewCompleted}
		default:
			r.lease = at.plus(in.lease)
			return r, output{renewal: reprise.Renewed}
		}
	case complete:
		if own && !r.completed {
			r.completed, r.payload, r.valid, r.fleeting = true, in.payload, at.plus(in.retention), false
		}
		return r, output{accepted: own}
	default: // release
		if own && !r.completed {
			r = record{highest: r.highest}
		}
		return r, output{}
	}
}

// granted returns the record after a claim was granted.
func (r record) granted(in input, attempt int, at window) record {
	if r.owner != in.owner {
		r.fence = 0
	}
	r.held, r.owner, r.print, r.attempt = true, in.owner, in.print, attempt
	r.lease, r.valid = at.plus(in.lease), at.plus(in.retention)
	if in.atomic {
		r.lease = window{never, never}
	}
	return r
}

// step returns every record that an operation may leave behind, given what it answered:
// none says that the store must not have answered so.
func step(state, call, answer any) []any {
	before, in, out := state.(record), call.(input), answer.(output)
	if out.refused != "" {
		return []any{before}
	}
	var after []any
	for _, r := range before.elsewhere() {
		if out.unknown { // it did not take place
			idle := r
			idle.fleeting = r.fleeting || in.fleeting && r.held && !r.completed && r.owner == in.owner
			after = append(after, idle)
		}
		for _, passed := range r.lease.passed(out.at) {
			for _, expired := range r.valid.passed(out.at) {
				r := r.seen(passed, expired)
				next, want := r.apply(in, out.at, passed)
				if out.unknown {
					next.fleeting = next.held && !next.completed && in.fleeting
					after = append(after, next)
					continue
				}
				after = append(after, r.answered(next, in, want, out, passed)...)
			}
		}
	}
	return after
}

// elsewhere returns the record and, for an attempt that nobody knows of, what is left
// when the server or the engine has ended it.
func (r record) elsewhere() []record {
	if r.fleeting {
		return []record{r, {highest: r.highest}}
	}
	return []record{r}
}

// answered returns the records that an answer may leave behind, none where it is not the
// one that the model gives. Only the store decides its fences, and whether it renews the
// lapsed lease of a claim's own owner.
func (r record) answered(next record, in input, want, out output, passed bool) []any {
	if out.renewal == reprise.RenewBusy && r.held && r.owner == in.owner {
		return []any{r}
	}
	if in.atomic && !r.held && in.kind == claim && out.outcome == reprise.InProgress {
		return []any{r} // another claim holds the lock of the ID while it looks at the record
	}
	if in.atomic && want.outcome == reprise.InProgress && r.print != in.print && out.outcome == reprise.Mismatch {
		want.outcome = reprise.Mismatch // its own process knows the fingerprint, and others do not before the commit
	}
	after := []any{}
	if want.outcome == reprise.Claimed && out.outcome == reprise.Claimed {
		repeated := r.held && r.owner == in.owner
		switch {
		case repeated && r.fence != 0 && out.fence != r.fence,
			!repeated && r.held && out.fence <= r.highest,
			out.fence < r.highest:
			return nil
		case !out.lapsed, out.at.to-out.at.from >= in.lease: // its answer may take longer than its lease
		case repeated && passed:
			next.lease, next.valid = r.lease, r.valid
		default:
			return nil
		}
		next.fence, next.highest = out.fence, max(out.fence, r.highest)
		want.fence, want.lapsed = out.fence, out.lapsed
		if repeated && passed && out.lapsed {
			stays := next
			stays.lease, stays.valid = r.lease, r.valid
			after = append(after, stays)
		}
	}
	want.at = out.at
	if want != out {
		return nil
	}
	return append(after, next)
}

// model returns the model of one ID.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{record{}} },
		Step: step,
		DescribeOperation: func(call, answer any) string {
			in, out := call.(input), answer.(output)
			return fmt.Sprintf("%s by %x: %s", in.kind, in.owner[:2], out)
		},
		DescribeState: func(state any) string {
			return fmt.Sprintf("%+v", state)
		},
	}
	return m.ToModel()
}

// String returns the answer as the call that gave it would, without what it leaves zero.
func (o output) String() string {
	text := ""
	if o.unknown {
		text = "unknown"
	}
	for _, part := range []struct {
		shown bool
		text  string
	}{
		{o.outcome != 0, fmt.Sprintf("%v", o.outcome)},
		{o.outcome == reprise.Claimed, fmt.Sprintf("attempt=%d fence=%d", o.attempt, o.fence)},
		{o.refused != "", o.refused},
		{o.lapsed, "without a new lease"},
		{o.payload != "", o.payload},
		{o.renewal != 0, fmt.Sprintf("%v", o.renewal)},
		{o.accepted, "accepted"},
	} {
		if part.shown {
			text += part.text + " "
		}
	}
	return fmt.Sprintf("%sat %v–%v", text, o.at.from, o.at.to)
}
