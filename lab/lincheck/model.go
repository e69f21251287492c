package lincheck

import (
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// kind is which operation of a store an operation of a history is.
type kind string

const (
	claim    kind = "claim"
	renew    kind = "renew"
	complete kind = "complete"
	release  kind = "release"
	unknown  kind = "unknown"
)

// input is a call of a store, with its arguments.
type input struct {
	kind     kind
	id       store.ID
	owner    store.Owner
	print    store.Fingerprint
	lease    time.Duration
	policy   store.Policy
	takeover bool
	attempts int // MaxAttempts
	payload  string
}

// answer is the result that the model expects of a call.
type answer struct {
	outcome  store.Outcome
	attempt  int
	payload  string
	renewal  store.RenewStatus
	accepted bool // a completion, or the word that the outcome is unknown
}

// record is the state of one ID in the model.
type record struct {
	held, completed bool
	owner           store.Owner // zero once it said that the outcome is unknown
	sayer           store.Owner // who said so
	print           store.Fingerprint
	attempt         int
	fence, highest  uint64 // of this attempt, 0 if its result was lost; of any before
	blind           bool   // the result of a claim was lost, whose fence may be higher
	policy          store.Policy
	lease, valid    window // their ends; once completed, the lease is the retention of the payload
	payload         string
}

// shown returns until when the record is there: for an attempt, up to a tick after both
// its lease and its validity have ended.
func (r record) shown(tick time.Duration) window {
	if r.completed {
		return r.valid
	}
	return window{max(r.lease.from, r.valid.from), max(r.lease.to, r.valid.to) + tick}
}

// seen returns the record as operations see it, if its lease has passed and its validity
// expired.
func (r record) seen(lapsed, expired bool) record {
	if r.held && expired && (r.completed || lapsed) {
		return r.none()
	}
	return r
}

// none returns the state after the end of the record.
func (r record) none() record { return record{highest: r.highest, blind: r.blind} }

// apply is the sequential meaning of a store, sixty lines with granted: the effect of an
// operation on a visible record, and its result. Leases and validities count from now;
// lapsed says whether the lease of the record has ended, or the retention of its payload.
func (r record) apply(in input, now window, lapsed bool) (record, answer) {
	own := r.held && r.owner == in.owner
	switch in.kind {
	case claim:
		switch {
		case !r.held:
			return r.granted(in, now, 1)
		case r.print != in.print:
			return r, answer{outcome: store.Mismatch}
		case r.completed && lapsed:
			return r, answer{outcome: store.Expired}
		case r.completed:
			return r, answer{outcome: store.Completed, payload: r.payload}
		case own:
			return r.granted(in, now, r.attempt)
		case !lapsed:
			return r, answer{outcome: store.InProgress}
		case r.policy.AtMostOnce, !in.takeover, in.attempts > 0 && r.attempt >= in.attempts:
			return r, answer{outcome: store.Lapsed}
		}
		return r.granted(in, now, r.attempt+1)
	case renew:
		switch {
		case !own:
			return r, answer{renewal: store.RenewLost}
		case r.completed:
			return r, answer{renewal: store.RenewCompleted}
		}
		r.lease = now.plus(in.lease)
		return r, answer{renewal: store.Renewed}
	case complete:
		if own && !r.completed {
			r.completed, r.payload = true, in.payload
			r.lease, r.valid = window{never, never}, now.plus(in.policy.Remembered())
			if in.policy.Horizon > 0 {
				r.lease = now.plus(in.policy.Retention)
			}
		}
		return r, answer{accepted: own}
	case release:
		if own && !r.completed {
			r = r.none()
		}
	case unknown:
		switch {
		case r.completed:
		case own:
			r.owner, r.sayer, r.policy.AtMostOnce = store.Owner{}, in.owner, true
			r.lease, r.valid = window{}, now.plus(r.policy.Remembered())
			return r, answer{accepted: true}
		default:
			return r, answer{accepted: r.held && r.sayer == in.owner}
		}
	}
	return r, answer{}
}

func (r record) granted(in input, now window, attempt int) (record, answer) {
	if r.owner != in.owner {
		r.fence = 0
	}
	r.held, r.owner, r.print, r.attempt = true, in.owner, in.print, attempt
	r.policy, r.lease, r.valid = in.policy, now.plus(in.lease), now.plus(in.policy.Remembered())
	return r, answer{outcome: store.Claimed, attempt: attempt}
}

// output is the result of a call, and its knowledge about the store's clock.
type output struct {
	answer
	unknown bool   // it may have taken place, at any time from at.from on
	refused string // why it did not take place
	fence   uint64
	lapsed  bool // a claim was granted to its owner without a new lease

	at        window // the time between call and answer
	began     window // of a claim that was granted, by its fence, as far as that is known
	tick      time.Duration
	late      time.Duration
	measured  bool // remaining says when the lease ends
	remaining time.Duration
}

// String returns the result as the call returned it, without zero fields.
func (o output) String() string {
	text := ""
	if o.unknown {
		text = "unknown "
	}
	for _, part := range []struct {
		shown bool
		text  string
	}{
		{o.outcome != 0, fmt.Sprintf("%v", o.outcome)},
		{o.outcome == store.Claimed, fmt.Sprintf("attempt=%d fence=%d", o.attempt, o.fence)},
		{o.began != window{}, fmt.Sprintf("began %v–%v", o.began.from, o.began.to)},
		{o.measured, fmt.Sprintf("remaining=%v", o.remaining)},
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
