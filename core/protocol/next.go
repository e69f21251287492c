package protocol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/protocol/internal/record"
	"github.com/reprise-go/reprise/core/store"
)

// Next is the answer to the next request with the key of a record, if it is the same
// request and the record is still as it was read. See [NextOf].
type Next struct {
	Outcome reprise.Outcome // that it counts as; Claimed: its handler runs
	Status  int             // of the response; 0 if the handler runs, or only the client's key opens the response
	Code    Code            // of the problem that the response is; empty for a replay or a run

	// Or are the problems that it may get instead, for a reason that this process does not
	// know. Text names the reason.
	Or []Code

	Text string // a description for operators, such as "409 result-expired, until the record ends"
}

// NextOf returns the answer to the next request with the key of r, for programs that show
// records. It decides with the code that answers the request. A nil r is no record, and
// the payload of one in [store.StateCompleted] is that of [store.Inspector].Inspect.
//
// A record shows its contents, but not how the guard of its requests reads it. The policy
// is that of the one guard whose Config.Name is the label of r; without one, Or and Text
// have what it may change.
func NextOf(r *store.Record, guards ...*Guard) Next {
	if r == nil {
		return Next{Outcome: reprise.Claimed, Text: "a new run: there is no record"}
	}
	f := forecast{record: r, guard: guardOf(r, guards)}
	if f.guard == nil {
		f.guard, f.guessed = new(Guard), true
	}
	return f.next()
}

// guardOf returns the guard whose policy a record has, nil if none or several may be.
func guardOf(r *store.Record, guards []*Guard) *Guard {
	named := func(g *Guard) bool { return g.cfg.Name == r.Label }
	i := slices.IndexFunc(guards, named)
	if i < 0 || r.State == store.StateUnreadable || slices.ContainsFunc(guards[i+1:], named) {
		return nil
	}
	return guards[i]
}

// forecast is one call of [NextOf].
type forecast struct {
	record  *store.Record
	guard   *Guard
	guessed bool // the guard is the zero value: the policy is not in this process
}

// next is the table of [store.Store].Claim for a request with the fingerprint of the
// record and an owner that is not its own.
func (f *forecast) next() Next {
	r, most := f.record, f.guard.cfg.MaxAttempts
	switch {
	case r.State == store.StateRunning:
		return f.running()
	case r.State == store.StateUnreadable:
		return refused(reprise.Corrupt, ", until the record is forgotten")
	case r.State == store.StateCompleted:
		return f.replay()
	case r.State == store.StateExpired:
		return refused(reprise.Expired, ", until the record ends")
	case r.State == store.StateUnknown, r.AtMostOnce:
		return refused(reprise.Lapsed, ", until the record is resolved or ends")
	case most > 0 && r.Attempt >= most:
		return refused(reprise.Lapsed, fmt.Sprintf(": the policy allows %d attempts, and this was number %d", most, r.Attempt))
	}
	n := Next{Outcome: reprise.Claimed, Text: fmt.Sprintf("a new run, as attempt %d", r.Attempt+1)}
	if f.guessed {
		n.or(CodeOutcomeUnknown, ", unless its policy, which this process does not have, allows no more attempts: then "+named(CodeOutcomeUnknown))
	}
	return n
}

func (f *forecast) running() Next {
	switch wait := f.guard.cfg.Wait; {
	case f.guessed:
		return refused(reprise.InProgress, ", or it waits for the attempt that runs, as the policy says")
	case wait > 0:
		return refused(reprise.InProgress, fmt.Sprintf(", if the attempt does not end within %v", wait.Round(time.Millisecond)))
	default:
		return refused(reprise.InProgress, ", until the attempt ends")
	}
}

// replay describes the response to a request that finds a completed record.
func (f *forecast) replay() Next {
	g, payload := f.guard, f.record.Payload
	if result := job.DescribeResult(payload); result != "" {
		if !f.guessed || result == "unreadable" { // by Do, too
			return refused(reprise.Corrupt, ": the record has a result of job.Do, "+result)
		}
		n := Next{Outcome: reprise.Replayed, Text: "the result, " + result + ", through job.Do"}
		n.or(CodeRecordCorrupt, "; a guard answers "+named(CodeRecordCorrupt))
		return n
	}
	if record.IsSealed(payload) {
		return f.sealed()
	}
	s, err := g.decode(payload, nil)
	if err != nil {
		return corrupt(err)
	}
	n := Next{Outcome: reprise.Replayed, Status: s.Status}
	switch g.formOf(nil, &s) {
	case formUnavailable:
		n.Status, n.Code = CodeResultUnavailable.Problem().Status, CodeResultUnavailable
		n.Text = named(CodeResultUnavailable) + ": the response was not kept whole"
	case formSummary:
		n.Text = f.marked(s.Status) + ", with a summary in place of its body, which was not kept"
		if f.guessed {
			n.or(CodeResultUnavailable, " (or "+named(CodeResultUnavailable)+", as the policy says)")
		}
	case formBlob:
		if !f.guessed && g.cfg.Offload.Blobs == nil {
			return refused(reprise.Replayed, ": "+errNoBlobs.Error()) // which counts as a replay
		}
		n.Text = fmt.Sprintf("%s, with a body of %d bytes from the blob store", f.marked(s.Status), s.Blob.Length())
		n.or(CodeResultUnavailable, " (or "+named(CodeResultUnavailable)+", if the blob is missing or damaged)")
		n.Or = append(n.Or, CodeStoreUnavailable) // which passes
	default:
		n.Text = fmt.Sprintf("%s, with a body of %d bytes", f.marked(s.Status), len(s.Body))
	}
	if f.guessed {
		reason := " (or " + named(CodeRecordCorrupt) + ", if its policy, which this process does not have, has Seal.Strict"
		if f.record.Resolved {
			reason += " or is that of an operation of job.Do"
		}
		n.or(CodeRecordCorrupt, reason+")")
	}
	return n
}

// sealed describes the replay of a response that only the client's key opens.
func (f *forecast) sealed() Next {
	n := Next{Outcome: reprise.Replayed, Text: "the sealed response, which only the key of the client opens"}
	if f.guessed {
		if _, err := record.ParseEnvelope(f.record.Payload); err != nil {
			return corrupt(err)
		}
		n.or(CodeRecordCorrupt, "; "+named(CodeRecordCorrupt)+" if its policy, which this process does not have, lacks the secret or its Seal.MaxAge has passed")
	} else if _, _, err := f.guard.cfg.Seal.envelope(f.record.Payload); err != nil {
		return corrupt(err)
	}
	n.or(CodeResultUnavailable, "; "+named(CodeResultUnavailable)+" if it was not kept whole")
	n.Or = append(n.Or, CodeStoreUnavailable) // of a blob store, which passes
	return n
}

// marked describes a replay by its status and its mark.
func (f *forecast) marked(status int) string {
	if f.guessed {
		return strconv.Itoa(status) + ", marked as a replay"
	}
	return strconv.Itoa(status) + ", marked " + FieldReplayed + ": true"
}

// or adds a problem that the request may get instead, and its reason.
func (n *Next) or(code Code, reason string) {
	n.Or = append(n.Or, code)
	n.Text += reason
}

// refused describes the problem of an outcome.
func refused(outcome reprise.Outcome, reason string) Next {
	code := codeOfOutcome(outcome)
	return Next{Outcome: outcome, Status: code.Problem().Status, Code: code, Text: named(code) + reason}
}

// corrupt describes the response to a request whose record cannot be read.
func corrupt(err error) Next {
	return refused(reprise.Corrupt, ": "+strings.TrimPrefix(err.Error(), "reprise: "))
}

// named returns the status and the name of a problem, such as "409 in-progress".
func named(code Code) string { return strconv.Itoa(code.Problem().Status) + " " + string(code) }
