package simulator

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// mark returns the mark of the guard on the response's record: "", unrecorded or
// unprotected.
func (a *answer) mark() string { return a.header.Get(protocol.FieldStatus) }

// omitted reports whether the response says that its body was not kept.
func (a *answer) omitted() bool {
	return a.header.Get(protocol.FieldBody) == "omitted"
}

// unknownKept names the refusals because of an unknown outcome, in the tally.
const unknownKept = "refused because a handler does not know, or ran too long"

// mayAnswer is the model of refusals: the circumstances in which each is honest.
var mayAnswer = map[protocol.Code]func(w *world, q *request, c *protocol.Config) bool{
	protocol.CodeKeyMissing: func(_ *world, q *request, c *protocol.Config) bool { return !q.keyed(c) && c.Required },
	protocol.CodeKeyInvalid: func(_ *world, q *request, c *protocol.Config) bool {
		_, both := q.keyUnder(c)
		return both || !q.quoted && c.KeyMode == protocol.Strict && q.header() != ""
	},
	protocol.CodeScopeMissing: func(_ *world, q *request, _ *protocol.Config) bool { return q.scope == "" },
	protocol.CodeRequestTooLarge: func(_ *world, q *request, c *protocol.Config) bool {
		return len(q.body) > limitOr(c.Limits.RequestBody)
	},
	protocol.CodeKeyReused: func(w *world, q *request, c *protocol.Config) bool {
		return w.before(q, func(other *request, theirs *protocol.Config) bool {
			return other.content(theirs) != q.content(c)
		})
	},
	protocol.CodeInProgress: func(w *world, q *request, _ *protocol.Config) bool {
		return q.contested() || w.before(q, func(other *request, _ *protocol.Config) bool {
			done := other.answer != nil && other.answer.at < q.asked && (other.run == nil || other.run.over() && (other.run.recorded() || other.run.releases() || other.run.isUnknown()))
			return !done || other.process.harmed
		})
	},
	protocol.CodeOutcomeUnknown: func(w *world, q *request, c *protocol.Config) bool {
		return q.contested() || w.before(q, func(other *request, theirs *protocol.Config) bool {
			if other.run != nil && w.mayBeUnknown(other.run) {
				w.tally[unknownKept]++
				return true
			}
			return (theirs.Preset == reprise.AtMostOnce || c.MaxAttempts > 0) && (other.run == nil || !other.run.recorded())
		})
	},
	protocol.CodeResultUnavailable: func(w *world, q *request, _ *protocol.Config) bool {
		return w.before(q, func(other *request, theirs *protocol.Config) bool {
			return other.run != nil && (other.program.ends != returns || other.program.decides == "omit" || other.program.size > 0)
		})
	},
	protocol.CodeResultExpired: func(w *world, q *request, c *protocol.Config) bool {
		return w.before(q, func(other *request, theirs *protocol.Config) bool {
			return other.run != nil && theirs.Horizon > 0
		}) || w.resolved(q.id(c)) || q.contested()
	},
	protocol.CodeStoreUnavailable: func(w *world, q *request, _ *protocol.Config) bool {
		return q.process.harmed || q.process.closing || len(w.draw.store) > 0
	},
	protocol.CodeRecordCorrupt: func(w *world, q *request, c *protocol.Config) bool {
		return (c.Seal.Strict || c.Seal.MaxAge > 0) && w.before(q, func(_ *request, theirs *protocol.Config) bool {
			return theirs.Seal.Secret != c.Seal.Secret || c.Seal.MaxAge > 0 // MaxAge is the reader's, against an old record that was put back
		})
	},
	protocol.CodeInternalError: func(_ *world, q *request, _ *protocol.Config) bool {
		_, both := q.process.decides(q)
		return both
	},
}

// contested reports whether the request ran, and its run was told to stop: its record may
// be another's by then.
func (q *request) contested() bool { return q.run != nil && q.run.told }

// before reports whether a request for the same operation was sent before q had its
// response, and satisfies the condition.
func (w *world) before(q *request, is func(other *request, theirs *protocol.Config) bool) bool {
	c, _ := q.process.decides(q)
	return slices.ContainsFunc(w.requests, func(other *request) bool {
		theirs, _ := other.process.decides(other)
		return other != q && theirs != nil && other.id(theirs) == q.id(c) && is(other, theirs)
	})
}

// refusedInside reports whether a guard inside may have refused an earlier request of the
// operation: to the outer guard that is a response of its handler, which it may keep.
func (w *world) refusedInside(q *request) bool {
	return w.before(q, func(other *request, _ *protocol.Config) bool { return other.run == nil && other.process.inner != nil })
}

// resolved reports whether an operator answered the operation.
func (w *world) resolved(id store.ID) bool {
	return slices.ContainsFunc(w.acts, func(a operatorAct) bool { return a.id == id && !a.forget })
}

// judgeAnswer judges a response that its client got. The lock is held.
func (w *world) judgeAnswer(q *request, a *answer) {
	c, both := q.process.decides(q)
	w.tally[strconv.Itoa(a.status)+" "+a.code]++
	w.tally[a.code]++
	honest := mayAnswer[protocol.Code(a.code)]
	switch {
	case c == nil, both, w.refusedInside(q):
	case honest != nil:
		if !honest(w, q, c) {
			w.find("%s: %q was answered %d for no reason", a.code, q.key, a.status)
		}
	case a.replayed:
		w.tally["replays"]++
		w.judgeReplay(q, c, a)
	case q.run == nil:
		w.find("response: %d %.60q came from no run", a.status, a.body)
	case slices.Contains([]ending{short, aborts, panics, exits}, q.program.ends):
	case a.status != q.program.status || a.body != q.run.body:
		w.find("response: the client of run %d got %d %.60q (R11)", q.run.n, a.status, a.body)
	}
}

// judgeReplay judges a replay: which run it repeats, whether that answered the same
// request, whether it was kept, for how long, and whether it is equal (G2, G6, G7). The
// lock is held.
func (w *world) judgeReplay(q *request, c *protocol.Config, a *answer) {
	if a.body == operatorsBody {
		if a.status != http.StatusAccepted || !w.resolved(q.id(c)) {
			w.find("invented replay: %d %q, which no operator answered", a.status, a.body)
		}
		return
	}
	var first *run
	for _, r := range w.runs {
		if r.id == q.id(c) && (a.body == r.body && a.body != "" || a.header.Get(runField) == strconv.Itoa(r.n)) {
			first = r
		}
	}
	if first == nil {
		w.judgeAnonymous(q, c, a)
		return
	}
	sent := first.request
	switch {
	case first.content() != q.content(c):
		w.find("another's replay: the request %s got the response of run %d to %s (G6)", q.body, first.n, sent.body)
	case first.unprotected:
		w.find("unprotected replay: of run %d, which has no record", first.n)
	case first.unknown():
		w.find("unknown replay: of run %d, whose outcome is unknown (R52)", first.n)
	case first.releases():
		w.find("released replay: of run %d, whose response released the key", first.n)
	case w.recordedInstead(first, q, a):
		w.find("unequal replay: of run %d, although another run's response is recorded (G2, G3)", first.n)
	case a.status != sent.program.status:
		w.find("unequal replay: run %d answered %d, its replay %d (G2)", first.n, sent.program.status, a.status)
	case a.omitted() && (sent.program.decides == "omit" || len(first.body) > limitOr(first.policy.Limits.ResponseBody)):
	case a.body != first.body:
		w.find("unequal replay: run %d answered %.60q, its replay %.60q (G2)", first.n, first.body, a.body)
	case first.recorded() && q.asked > sent.answer.at+first.policy.Retention:
		w.find("late replay: of run %d, at %v, after its retention of %v from %v (G7)", first.n, q.asked, first.policy.Retention, sent.answer.at)
	}
	for _, name := range []string{runField, "Content-Type", "Idempotency-Key-Expires"} {
		want, got := strconv.Itoa(first.n), a.header.Get(name)
		if name != runField {
			if sent.answer == nil || !first.recorded() {
				continue
			}
			want = sent.answer.header.Get(name)
		}
		if got != want && (first.policy.Keep.Headers == nil || name != runField) && !a.omitted() {
			w.find("unequal replay: run %d answered with %s %q, its replay %q (R13)", first.n, name, want, got)
		}
	}
}

// recordedInstead reports whether the client of another run has a response that is
// recorded, and whose retention lasts until the replay.
func (w *world) recordedInstead(first *run, q *request, a *answer) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool {
		return r != first && r.id == first.id && r.recorded() && r.request.answer.at < q.asked && a.at < r.end+r.policy.Retention
	})
}

// judgeAnonymous judges a replay whose body and fields do not name its run: of a response
// without a body, or of a handler that panicked.
func (w *world) judgeAnonymous(q *request, c *protocol.Config, a *answer) {
	if !slices.ContainsFunc(w.runs, func(r *run) bool {
		p := r.request.program
		same := a.status == p.status || a.status == http.StatusInternalServerError
		return r.id == q.id(c) && same && (r.body == "" || p.ends != returns || a.omitted() || a.status == 500) && !r.unprotected
	}) {
		w.find("invented replay: %d %.60q, which no run answered", a.status, a.body)
	}
}

// judgeStore judges the records that the store keeps after everything ended.
func (w *world) judgeStore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	page, err := w.store.List(context.Background(), store.Query{Limit: store.MaxPage})
	if err != nil {
		panic(err)
	}
	for _, listed := range page.Records {
		rec, err := w.store.Inspect(context.Background(), listed.ID)
		if err != nil {
			continue
		}
		for _, r := range w.runs {
			if r.id != rec.ID || !r.over() || r.body == "" || !strings.Contains(string(rec.Payload), r.body) {
				continue
			}
			if r.policy.Seal.Secret.ID() != "" {
				w.find("plaintext: the store has the response of run %d, which its policy seals", r.n)
			}
			if r.recorded() && w.now() > r.request.answer.at+r.policy.Retention+time.Second {
				w.find("kept: the store has the response of run %d after its retention (R37)", r.n)
			}
			if r.request.program.decides == "omit" {
				w.find("kept: the store has the body of run %d, which its handler omits (R36)", r.n)
			}
		}
	}
}
