package simulator

import (
	"errors"
	"slices"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// mayRunAgain is the model of the guarantees G1, G3, G5, G6 and G7: a handler runs for an
// operation only if, for each earlier run of it, one of these sentences is true. A policy
// is that of the earlier run, as its record has it from its claim on (R38).
var mayRunAgain = []struct {
	sentence string
	holds    func(w *world, earlier, next *run) bool
}{
	{
		"its response released the key",
		func(_ *world, r, _ *run) bool { return r.over() && r.releases() },
	},
	{
		"the record of its policy has ended: retention and horizon have passed",
		func(w *world, r, next *run) bool { return !r.believes() && next.start >= w.remembered(r) },
	},
	{
		"it lapsed, was claimed as recoverable, and the same request took it over within MaxAttempts",
		func(w *world, r, next *run) bool {
			return r.mayLapse() && next.start >= r.request.asked+r.policy.Engine.Lease &&
				next.content() == r.content() && (next.policy.MaxAttempts == 0 || next.attempt <= next.policy.MaxAttempts)
		},
	},
	{
		"a later attempt owned the record since",
		func(w *world, r, _ *run) bool {
			return !r.believes() && slices.ContainsFunc(w.runs, func(later *run) bool { return later.n > r.n && later.id == r.id && !later.unprotected })
		},
	},
	{
		"it lapsed, was claimed as recoverable, and a claim that took it over was given back, or refused by a guard inside",
		func(w *world, r, _ *run) bool {
			return r.mayLapse() && slices.ContainsFunc(w.requests, func(q *request) bool {
				policy, _ := q.process.decides(q)
				return (q.run == nil || q.run.unprotected) && policy != nil && q.id(policy) == r.id && slices.ContainsFunc(q.sights, func(s sight) bool {
					return s.at >= r.request.asked+r.policy.Engine.Lease && (q.process.inner != nil || s.err != nil)
				})
			})
		},
	},
	{
		"an operator forgot it",
		func(w *world, r, _ *run) bool {
			return slices.ContainsFunc(w.acts, func(a operatorAct) bool { return a.forget && a.id == r.id && a.at >= r.start })
		},
	},
	{
		"it ran unprotected, and only its own process excluded others",
		func(_ *world, r, next *run) bool { return r.unprotected && (r.over() || r.process != next.process) },
	},
	{
		"the store could not be reached, FailOpen lets it run unprotected, and this process knows nothing of the key",
		func(w *world, r, next *run) bool { return next.unprotected && !r.knownIn(next.process) },
	},
}

// over reports whether the handler has returned.
func (r *run) over() bool { return r.returned && !r.crashed }

// believes reports whether the handler runs and was not told that it lost its lease.
func (r *run) believes() bool {
	return !r.returned && !r.process.isDead() && r.ctx.Err() == nil
}

// mayLapse reports whether the record of the run may have lapsed, to be taken over. One
// that says that its outcome is unknown is not. Nor is that of a handler that runs, while
// its process can keep the lease, or mark the record when it runs too long.
func (r *run) mayLapse() bool {
	running := !r.returned && !r.process.isDead() && !r.process.harmed && !r.process.closing
	return !r.believes() && !running && !r.recorded() && !r.isUnknown() && r.policy.Preset == reprise.Recoverable
}

// unknown reports whether the handler, or the policy by its status, says that the outcome
// is unknown (R52).
func (r *run) unknown() bool {
	p := r.request.program
	if p.decides == "keep" || p.decides == "release" || p.ends != returns && p.ends != streams {
		return p.decides == "unknown"
	}
	decision, _ := decides(r.policy, p.status)
	return p.decides == "unknown" || decision == protocol.OutcomeUnknown
}

// isUnknown reports whether the record says so: the client saw a response without a mark.
func (r *run) isUnknown() bool {
	a := r.request.answer
	return r.over() && r.unknown() && !r.unprotected && a != nil && !a.replayed && a.mark() == "" && a.body == r.body
}

// mayBeUnknown reports whether the record may say so, because of the handler, or because
// it runs, or ran, for a lease more than MaxRun.
func (w *world) mayBeUnknown(r *run) bool {
	end := w.now()
	if r.returned {
		end = r.end
	}
	e := r.policy.Engine
	return r.over() && r.unknown() || e.MaxRun > 0 && end-r.request.asked >= e.MaxRun+e.Lease
}

// recorded reports whether the client saw a response that is recorded.
func (r *run) recorded() bool {
	a := r.request.answer
	return r.over() && !r.releases() && !r.unknown() && a != nil && !a.replayed && a.code == "" && a.mark() == "" && a.body == r.body &&
		r.request.program.ends == returns && len(r.body) <= limitOr(r.policy.Limits.ResponseBody)
}

// remembered returns the earliest instant at which the record of r may end: retention
// and horizon count from the completion, which follows the handler, or, where no client
// knows that there was one, from the claim. What an operator resolved is remembered at
// least as long, and as long as the operator said.
func (w *world) remembered(r *run) time.Duration {
	from := r.request.asked
	if r.recorded() || r.isUnknown() {
		from = r.end
	}
	until := from + r.policy.Retention + r.policy.Horizon
	if !r.over() {
		until = max(until, from+r.policy.Engine.Lease)
	}
	for _, a := range w.acts {
		if a.id == r.id && a.at >= r.start && !a.forget {
			until = max(until, a.at+a.retention)
		}
	}
	return until
}

// releases is the table of the presets (R31, R33, R36, R52).
func (r *run) releases() bool {
	p, c := r.request.program, r.policy
	recoverable := c.Preset == reprise.Recoverable
	decision, panicked := decides(c, p.status)
	switch {
	case r.unknown():
		return false
	case p.decides == "release":
		return true
	case p.ends != returns && p.ends != streams, panicked:
		return recoverable
	case p.decides == "keep", decision == protocol.KeepResponse:
		return false
	case decision == protocol.ReleaseKey:
		return true
	case r.told && p.status >= 400 && p.status <= 499: // as a 5xx: the cancellation may have made it
		return recoverable
	case slices.Contains([]int{401, 407, 425, 429}, p.status):
		return true
	default:
		return recoverable && (p.status >= 500 || slices.Contains([]int{307, 308, 408, 499}, p.status))
	}
}

func decides(c *protocol.Config, status int) (d protocol.Decision, panicked bool) {
	if c.Keep.Decide == nil {
		return protocol.ByPreset, false
	}
	defer func() { panicked = recover() != nil }()
	return c.Keep.Decide(protocol.Ending{Status: status}), false
}

// knownIn reports whether a process knows of the run: it has not ended there, or its
// completion waits in the background.
func (r *run) knownIn(p *process) bool {
	if r.process != p {
		return false
	}
	a := r.request.answer
	waits := a != nil && a.mark() == "unrecorded" && !r.unprotected && !r.releases() && !p.settled[r.fence] && p.guard.Engine().Stats().Background > 0
	return !r.returned || waits
}

// judgeRun judges a run that begins. The lock is held.
func (w *world) judgeRun(r *run, body string) {
	q := r.request
	w.tally["runs"]++
	_, both := r.process.decides(q)
	_, differ := q.keyUnder(r.policy)
	switch {
	case differ:
		w.find("two keys: run %d has one in its header and another in its source (R48)", r.n)
	case both:
		w.find("two policies: run %d is inside of two guards that decide differently (R51)", r.n)
	case r.id != q.id(r.policy):
		w.find("identity: run %d has another ID than its scope, endpoint and key make", r.n)
	case body != q.body:
		w.find("body: run %d got %q, and its client sent %q (R27)", r.n, body, q.body)
	case r.unprotected:
		w.tally["unprotected"]++
		w.judgeOpening(r)
	case !slices.ContainsFunc(q.sights, func(s sight) bool { return s.err == nil && s.res.Fence == r.fence }):
		w.find("unclaimed: run %d was not granted by the store (G5)", r.n)
	}
	for _, earlier := range w.runs {
		if earlier.id != r.id {
			continue
		}
		w.tally["again"]++
		allowed := false
		for _, rule := range mayRunAgain {
			if rule.holds(w, earlier, r) {
				w.tally[rule.sentence]++
				allowed = true
			}
		}
		if !allowed {
			w.find("ran again, %s: run %d of %q follows run %d, and no sentence of the model allows it", earlier.state(), r.n, q.key, earlier.n)
		}
	}
}

// judgeOpening judges a run without a claim (R40). The lock is held.
func (w *world) judgeOpening(r *run) {
	if !r.policy.FailOpen {
		w.find("open: run %d is unprotected, and its policy does not fail open", r.n)
	}
	saw := r.request.sights
	switch last := len(saw) - 1; {
	case last < 0:
		w.find("open: run %d is unprotected, and the store was not asked (R40)", r.n)
	case !errors.Is(saw[last].err, store.ErrUnavailable) && !errors.Is(saw[last].err, store.ErrUnknown):
		w.find("open: run %d is unprotected, and its last claim was answered: %v %v (R40)", r.n, saw[last].res.Outcome, saw[last].err)
	case slices.ContainsFunc(saw, func(s sight) bool { return s.err == nil && s.res.Outcome == store.InProgress }):
		w.find("open: run %d is unprotected, and it saw the key in progress (R40)", r.n)
	}
}

// state describes a run that another one follows.
func (r *run) state() string {
	switch preset := r.policy.Preset.String(); {
	case r.believes():
		return preset + " and still running"
	case r.recorded():
		return preset + " and recorded"
	case r.over():
		return preset + " and ended"
	default:
		return preset + " and lapsed"
	}
}

// content returns the content of the request of the run, under its policy.
func (r *run) content() string { return r.request.content(r.policy) }

// limitOr returns a bound on bodies, or its default.
func limitOr(n int) int {
	if n == 0 {
		return 1 << 20
	}
	return n
}
