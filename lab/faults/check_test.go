package faults_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// preset is the promise of a world about effects.
type preset uint8

const (
	recoverable preset = iota
	atMostOnce
	transactional
)

// call is a client's view of an operation: one call of the retrying client, with all its
// attempts.
type call struct {
	began      int64 // on the clock of the machine, which servers and clients share
	ended      int64
	err        error // nil: it was answered
	status     int
	code       string // of a problem document
	sum        [16]byte
	fence      uint64 // of the attempt that made the response; 0: it does not say
	replayed   bool
	unrecorded bool // the server said that the response was not recorded
	other      bool // it was sent with another body than the first
	audit      bool // it was sent when all faults were over
}

// effect is a row that a handler wrote.
type effect struct {
	attempt int
	owner   string
}

// holder is an attempt as its server saw it.
type holder struct {
	owner       string
	attempt     int
	fence       uint64
	asked       int64 // when it asked for the claim
	from, until int64 // when it believed that it holds the lease, unless it ended before
	end         int64 // 0: it did not say
	completed   bool  // the store confirmed it, and with replicas the completion, too
}

// operation is everything that is known of one operation.
type operation struct {
	op      string
	calls   []call
	effects []effect
	holders map[string]*holder
	record  string // the owner of the completed record in PostgreSQL; empty: not known
}

// violation is a guarantee that did not hold.
type violation struct {
	rule, op, text string
}

func (v violation) String() string { return fmt.Sprintf("%s: %s: %s", v.rule, v.op, v.text) }

// ruleProgress is no numbered guarantee: each call ends with a response.
const ruleProgress = "progress"

// check returns the violations of an operation.
func check(o *operation, p preset) []violation {
	var found []violation
	bad := func(rule, format string, args ...any) {
		found = append(found, violation{rule, o.op, fmt.Sprintf(format, args...)})
	}
	o.checkAnswers(p, bad)
	o.checkEffects(p, bad)
	o.checkHolders(bad)
	return found
}

// confirmed returns the operation without the responses replayed from a completion that
// was not confirmed to its server. Such a response may be lost with the primary although
// no confirmed write is: the operation runs again.
func (o *operation) confirmed() *operation {
	unconfirmed := make(map[uint64]bool)
	for _, h := range o.holders {
		unconfirmed[h.fence] = h.end != 0 && !h.completed
	}
	left := *o
	left.calls = slices.DeleteFunc(slices.Clone(o.calls), func(c call) bool { return c.replayed && unconfirmed[c.fence] })
	return &left
}

type report func(rule, format string, args ...any)

// definite reports whether a response ends a call for good.
func (c *call) definite(p preset) bool {
	switch {
	case c.err != nil:
		return false
	case c.other:
		return c.status == 422 && c.code == "key-reused"
	case c.status == 201:
		return true
	case p == atMostOnce:
		return c.status == 409 && (c.code == "outcome-unknown" || c.code == "result-unavailable") || c.status == 500 && c.replayed
	default:
		return false
	}
}

// checkAnswers demands that every call is answered, that replays are equal to each other
// and to every first response that was recorded, and that the key stays bound.
func (o *operation) checkAnswers(p preset, bad report) {
	var first *call
	for i := range o.calls {
		c := &o.calls[i]
		if c.other && c.err == nil && (c.status == 201 || p == atMostOnce && c.code == "outcome-unknown" && o.unclaimed(c.began)) && !o.answered(i) {
			return // a claim in doubt was released, as the docs say, and the key is the other request's
		}
		switch {
		case !c.definite(p) && c.err == nil && (c.other || c.code == "key-reused"):
			bad("G6", "a request with the key (another one than the first: %t) was answered %d %s", c.other, c.status, c.code)
		case !c.definite(p):
			bad(ruleProgress, "a call ended with %d %s %v", c.status, c.code, c.err)
		case c.other || c.status == 409:
		case !c.replayed && c.began > o.settled():
			bad("G7", "it ran again after it was answered")
		case c.unrecorded:
		case first == nil:
			first = c
		case c.status != first.status || c.sum != first.sum:
			bad("G2", "answered %d %x and %d %x (replayed: %t and %t)", first.status, first.sum[:4], c.status, c.sum[:4], first.replayed, c.replayed)
		}
	}
}

// unclaimed reports whether the attempts that are known asked for their claims after at.
func (o *operation) unclaimed(at int64) bool {
	for _, h := range o.holders {
		if h.asked < at {
			return false
		}
	}
	return true
}

// recorded reports whether c got the operation's answer, and the server vouched for it.
func (c *call) recorded() bool { return c.err == nil && c.status == 201 && !c.unrecorded && !c.other }

// settled returns when the operation was answered for the first time. From then on it
// must not run.
func (o *operation) settled() int64 {
	at := int64(math.MaxInt64)
	for i := range o.calls {
		if o.calls[i].recorded() {
			at = min(at, o.calls[i].ended)
		}
	}
	return at
}

// answered reports whether a call before the n-th had a response that was recorded.
func (o *operation) answered(n int) bool {
	return slices.ContainsFunc(o.calls[:n], func(c call) bool { return c.recorded() })
}

// checkEffects counts effects, and demands that each belongs to an attempt.
func (o *operation) checkEffects(p preset, bad report) {
	n := len(o.effects)
	owners := make(map[string]int)
	for _, e := range o.effects {
		owners[e.owner]++
		if h := o.holders[e.owner]; h == nil {
			bad("G5", "an effect of %s, whose claim was not granted", e.owner)
		}
	}
	for owner, times := range owners {
		if times > 1 {
			bad("G5", "%d effects of one attempt, %s", times, owner)
		}
	}
	answered := o.answered(len(o.calls))
	switch {
	case p == transactional && (n > 1 || n == 0 && answered):
		bad("G4", "%d effects", n)
	case p == transactional && n == 1 && o.record != "" && o.record != o.effects[0].owner:
		bad("G4", "the effect is of %s, the record of %s", o.effects[0].owner, o.record)
	case p == atMostOnce && n > 1:
		bad("at most once", "%d effects", n)
	case n > len(o.holders):
		bad("G5", "%d effects of %d attempts", n, len(o.holders))
	case n == 0 && answered:
		bad("effects", "answered, and nothing was done")
	}
}

// checkHolders demands that no two attempts believed that they hold the lease at a time,
// that one at most completed, and that none was granted once the operation was answered.
func (o *operation) checkHolders(bad report) {
	list := make([]*holder, 0, len(o.holders))
	completed := 0
	for _, h := range o.holders {
		list = append(list, h)
		if h.completed {
			completed++
		}
		if h.asked > o.settled() {
			bad("G7", "attempt %d of %s was granted after it was answered", h.attempt, h.owner)
		}
	}
	if completed > 1 {
		bad("G3", "%d attempts completed", completed)
	}
	slices.SortFunc(list, func(a, b *holder) int { return cmp.Compare(a.from, b.from) })
	for i, h := range list {
		until := h.until
		if h.end != 0 {
			until = min(until, h.end)
		}
		for _, next := range list[i+1:] {
			// A claim that was answered after its lease is believed for no time at all.
			if both := min(until, next.until) - next.from; both > 0 {
				bad("G1", "attempt %d of %s and %d of %s believed to hold the lease for %d µs", h.attempt, h.owner, next.attempt, next.owner, both/1000)
			}
		}
	}
}
