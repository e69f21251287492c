package lincheck

import (
	"github.com/anishathalye/porcupine"

	"github.com/reprise-go/reprise/core/store"
)

// model returns the model of one ID.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{Init: func() []any { return []any{record{}} }, Step: step}
	return m.ToModel()
}

// step returns every record that an operation may leave behind, given its result: none
// says that the store must not have returned this result.
func step(state, call, answered any) []any {
	r, in, out := state.(record), call.(input), answered.(output)
	switch {
	case out.refused != "", out.renewal == store.RenewBusy && r.mayBeBusy(in):
		return []any{r}
	case out.renewal == store.RenewBusy:
		return nil
	}
	var after []any
	if out.unknown { // it did not take place
		after = append(after, r)
	}
	at := out.at
	if stranger := r.owner != in.owner; stranger && out.began != (window{}) {
		at.to = min(at.to, out.began.to)
	}
	for _, lapsed := range r.lease.passed(at) {
		for _, expired := range r.shown(out.tick).passed(at) {
			after = append(after, r.seen(lapsed, expired).explain(in, out, lapsed)...)
		}
	}
	return after
}

// explain returns the records that an operation on a record that is seen may leave
// behind, if it answered so.
func (r record) explain(in input, out output, lapsed bool) []any {
	own := r.held && r.owner == in.owner
	now := out.at.wider(out.tick)
	now.to += out.late
	if out.outcome == store.Claimed && !own && out.began != (window{}) {
		if _, ok := out.began.and(now); !ok {
			return nil // its fence is not the time of the claim
		}
		now = out.began
		if out.fence == r.highest+1 || r.blind { // it need not be the clock that the claim read: that may be earlier than the last claim
			now.from = min(now.from, out.at.from)
		}
	}
	next, want := r.apply(in, now, lapsed)
	if out.unknown {
		next.blind = next.blind || in.kind == claim
		return []any{next}
	}
	if want != out.answer {
		return nil
	}
	if out.outcome == store.Claimed {
		return r.claimed(next, in, out, own, lapsed)
	}
	if !next.read(out) {
		return nil
	}
	return []any{next}
}

// mayBeBusy reports whether a renewal may be answered by RenewBusy. It is the strict
// answer to a renewal that finds the row locked, and does not tell the state of the
// record, which may also have ended: the call that holds the row may have found it before
// its end, or begin it anew. RenewLost would end an attempt that has a lease, and to wait
// would let the other leases of the batch lapse. The record of another owner is never
// busy.
func (r record) mayBeBusy(in input) bool { return !r.held || r.owner == in.owner }

// claimed returns the records that a granted claim may leave: the store decides its
// fence, and whether it renews the lapsed lease of a claim's own owner.
func (r record) claimed(next record, in input, out output, own, lapsed bool) []any {
	next.fence, next.highest, next.blind = out.fence, max(out.fence, r.highest), false
	stays := next
	stays.policy, stays.lease, stays.valid = r.policy, r.lease, r.valid
	switch {
	case own && r.fence != 0 && out.fence != r.fence, !own && r.held && out.fence <= r.highest, out.fence < r.highest:
		return nil
	case !out.lapsed:
		return []any{next}
	}
	var after []any
	if out.at.to-out.at.from >= in.lease { // its result took longer than its lease
		after = append(after, next)
	}
	if own && lapsed && stays.read(out) {
		after = append(after, stays)
	}
	return after
}

// read narrows down when the lease of a record ends, by the time in a result, and reports
// whether they are consistent.
func (r *record) read(out output) (possible bool) {
	if !out.measured {
		return true
	}
	r.lease, possible = r.lease.and(window{out.at.from + out.remaining, out.at.to + out.remaining})
	return possible
}
