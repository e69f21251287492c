package operate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Next is the answer to the next request with the key of a record, if it is the same
// request and the record is still as it was read. See [NextOf].
type Next struct {
	Outcome reprise.Outcome // that it counts as; Claimed: its handler runs
	Status  int             // of the response; 0 if the handler runs, or only the client's key opens the response
	Code    protocol.Code   // of the problem that the response is; empty for a replay or a run

	// Or are the problems that it may get instead, for a reason that this process does not
	// know. Text names the reason.
	Or []protocol.Code

	Text string // a description for operators, such as "409 result-expired, until the record ends"
}

// NextOf returns the answer to the next request with the key of r, for programs that show
// records. A nil r is no record, and the payload of one in [store.StateCompleted] is that
// of [store.Inspector].Inspect.
//
// A record shows its contents, but not how the guard of its requests reads it. The policy
// is that of the one guard whose Config.Label is the label of r; without one, Or and Text
// have what it may change.
func NextOf(r *store.Record, guards ...*protocol.Guard) Next {
	if r == nil {
		return Next{Outcome: reprise.Claimed, Text: "a new run: there is no record"}
	}
	f := forecast{record: r}
	f.policy, f.known = policyOf(r, guards)
	return f.next()
}

// policyOf returns the policy of a record, and false if none or several may be.
func policyOf(r *store.Record, guards []*protocol.Guard) (policy protocol.Config, known bool) {
	if r.State == store.StateUnreadable { // it has no label
		return policy, false
	}
	for _, g := range guards {
		switch c := g.Config(); {
		case c.Label != r.Label:
		case known:
			return protocol.Config{}, false
		default:
			policy, known = c, true
		}
	}
	return policy, known
}

// forecast is one call of [NextOf].
type forecast struct {
	record *store.Record
	policy protocol.Config
	known  bool // the policy is in this process; otherwise it is the zero value
}

// next is the table of [store.Store].Claim for a request with the fingerprint of the
// record and an owner that is not its own.
func (f *forecast) next() Next {
	r, most := f.record, f.policy.MaxAttempts
	switch {
	case r.State == store.StateRunning:
		return f.running()
	case r.State == store.StateUnreadable:
		return refused(protocol.CodeRecordCorrupt, ", until the record is forgotten")
	case r.State == store.StateCompleted:
		return f.replay()
	case r.State == store.StateExpired:
		return refused(protocol.CodeResultExpired, ", until the record ends")
	case r.State == store.StateUnknown, r.AtMostOnce:
		return refused(protocol.CodeOutcomeUnknown, ", until the record is resolved or ends")
	case most > 0 && r.Attempt >= most:
		return refused(protocol.CodeOutcomeUnknown, fmt.Sprintf(": the policy allows %d attempts, and this was number %d", most, r.Attempt))
	}
	n := Next{Outcome: reprise.Claimed, Text: fmt.Sprintf("a new run, as attempt %d", r.Attempt+1)}
	if !f.known {
		const code = protocol.CodeOutcomeUnknown
		n.or(code, ", unless its policy, which this process does not have, allows no more attempts: then "+named(code))
	}
	return n
}

func (f *forecast) running() Next {
	switch wait := f.policy.Wait; {
	case !f.known:
		return refused(protocol.CodeInProgress, ", or it waits for the attempt that runs, as the policy says")
	case wait > 0:
		return refused(protocol.CodeInProgress, fmt.Sprintf(", if the attempt does not end within %v", wait.Round(time.Millisecond)))
	default:
		return refused(protocol.CodeInProgress, ", until the attempt ends")
	}
}

// replay describes the response to a request that finds a completed record.
func (f *forecast) replay() Next {
	a := readAnswer(f.record.Payload)
	if a.Result != "" {
		if f.known || errors.Is(a.Err, store.ErrCorrupt) { // by Do, too
			return refused(protocol.CodeRecordCorrupt, ": the record has a result of job.Do, "+a.Result)
		}
		n := Next{Outcome: reprise.Replayed, Text: "the result, " + a.Result + ", through job.Do"}
		n.or(protocol.CodeRecordCorrupt, "; a guard answers "+named(protocol.CodeRecordCorrupt))
		return n
	}
	if f.known {
		if err := f.policy.Seal.Readable(f.record.Payload); err != nil {
			return corrupt(err)
		}
	}
	response, err := a.Response, a.Err
	n := Next{Outcome: reprise.Replayed, Status: response.Status}
	switch elsewhere := (*OffloadedError)(nil); {
	case errors.Is(err, ErrSealed):
		return f.sealed()
	case errors.Is(err, ErrResultUnavailable), errors.Is(err, ErrBodyOmitted) && f.policy.Oversize == protocol.Unavailable:
		n = refused(protocol.CodeResultUnavailable, ": the response was not kept whole")
		n.Outcome = reprise.Replayed
	case errors.Is(err, ErrBodyOmitted):
		n.Text = f.marked(n.Status) + ", with a summary in place of its body, which was not kept"
		if !f.known {
			n.or(protocol.CodeResultUnavailable, " (or "+named(protocol.CodeResultUnavailable)+", as the policy says)")
		}
	case errors.As(err, &elsewhere) && f.known && f.policy.Offload.Blobs == nil:
		n = refused(protocol.CodeStoreUnavailable, ": the policy has no Offload.Blobs")
		n.Outcome = reprise.Replayed
	case elsewhere != nil:
		n.Text = fmt.Sprintf("%s, with a body of %d bytes from the blob store", f.marked(n.Status), response.Length)
		n.or(protocol.CodeResultUnavailable, " (or "+named(protocol.CodeResultUnavailable)+", if the blob is missing or damaged)")
		n.Or = append(n.Or, protocol.CodeStoreUnavailable) // which passes
	case err != nil:
		return corrupt(err)
	default:
		n.Text = fmt.Sprintf("%s, with a body of %d bytes", f.marked(n.Status), len(response.Body))
	}
	if !f.known {
		reason := " (or " + named(protocol.CodeRecordCorrupt) + ", if its policy, which this process does not have, has Seal.Strict"
		if f.record.Resolved {
			reason += " or is that of an operation of job.Do"
		}
		n.or(protocol.CodeRecordCorrupt, reason+")")
	}
	return n
}

// sealed describes the replay of a response that only the client's key opens.
func (f *forecast) sealed() Next {
	n := Next{Outcome: reprise.Replayed, Text: "the sealed response, which only the key of the client opens"}
	if !f.known {
		n.or(protocol.CodeRecordCorrupt, "; "+named(protocol.CodeRecordCorrupt)+
			" if its policy, which this process does not have, lacks the secret or its Seal.MaxAge has passed")
	}
	n.or(protocol.CodeResultUnavailable, "; "+named(protocol.CodeResultUnavailable)+" if it was not kept whole")
	n.Or = append(n.Or, protocol.CodeStoreUnavailable) // of a blob store, which passes
	return n
}

// marked describes a replay by its status and its mark.
func (f *forecast) marked(status int) string {
	if !f.known {
		return strconv.Itoa(status) + ", marked as a replay"
	}
	return strconv.Itoa(status) + ", marked " + protocol.FieldReplayed + ": true"
}

// or adds a problem that the request may get instead, and its reason.
func (n *Next) or(code protocol.Code, reason string) {
	n.Or = append(n.Or, code)
	n.Text += reason
}

// refused describes a problem.
func refused(code protocol.Code, reason string) Next {
	p := code.Problem()
	return Next{Outcome: p.Outcome, Status: p.Status, Code: code, Text: named(code) + reason}
}

// corrupt describes the response to a request whose record cannot be read.
func corrupt(err error) Next {
	return refused(protocol.CodeRecordCorrupt, ": "+strings.TrimPrefix(err.Error(), "reprise: "))
}

// named returns the status and the name of a problem, such as "409 in-progress".
func named(code protocol.Code) string {
	return strconv.Itoa(code.Problem().Status) + " " + string(code)
}
