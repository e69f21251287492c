package protocol

import (
	"context"
	"strconv"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// A Decision says whether a response is kept, its claim released, or neither.
type Decision uint8

// The decisions.
const (
	ByPreset       Decision = iota // leave it to the status and the preset
	KeepResponse                   // record the response and replay it
	ReleaseKey                     // release the claim: the next request runs
	OutcomeUnknown                 // neither: see Unknown
)

// Ending is how a run ended that has a complete response, for Config.Keep.Decide.
type Ending struct {
	// Status is the status of the response. For one of gRPC it is the HTTP status that its
	// Grpc-Status stands for, such as 503 for UNAVAILABLE.
	Status int

	// Head has up to the first 4 KiB of the body, and so all of a shorter one, as the
	// handler wrote it: a layer inside may have compressed it. It is there whether or not
	// the body is kept or has already been sent. Of a call it is the start of the encoded
	// message, or of the google.rpc.Status in its place. It must be neither kept nor
	// modified. It is empty when [Guard.Keeps] asks.
	Head []byte

	// Reported is the error that stands beside the response, nil if there is none: the
	// handler reported it to its framework, or returned it after its first byte, so that
	// the framework made no response of it. It does not cut the response short (R33d).
	Reported error
}

// headSize bounds the start of a body that Config.Keep.Decide sees, in bytes.
const headSize = 4 << 10

// keepHead keeps the start of a body that leaves the memory. p is its next part.
func (x *Exchange) keepHead(p []byte) {
	s := x.scratch
	if x.guard.cfg.Keep.Decide != nil && len(s.head) < headSize {
		s.head = append(s.head, p[:min(len(p), headSize-len(s.head))]...)
	}
}

// head returns the start of a body, which is in body unless it has left the memory.
func (x *Exchange) head(body []byte) []byte {
	if kept := x.scratch.head; len(kept) > 0 {
		body = kept
	}
	n := min(len(body), headSize)
	return body[:n:n]
}

// A handler may decide for its own request (R36), with the context of the request or with
// the one of its framework. Each function reports whether there is an exchange to decide
// about: there is none for a request without a key, and none after the handler's response
// was taken. Then it has no effect, and the first time logs a warning that says why: once
// for each guard, or for the process where no guard runs the handler. Of several
// decisions between Keep, Release and Unknown the last one counts.

// Keep records the response with any status, so that retries get a replay of it.
func Keep(ctx context.Context) bool {
	return decideFor(ctx, "Keep", func(x *Exchange) { x.decision = KeepResponse })
}

// Release releases the claim after any response, so that the next request with the key
// runs the handler.
func Release(ctx context.Context) bool {
	return decideFor(ctx, "Release", func(x *Exchange) { x.decision = ReleaseKey })
}

// Unknown says that it is not known whether the operation happened, as when a bank did
// not answer in time (R52). This client gets the handler's own response, which should say
// so; it is not recorded. Every retry gets 409 outcome-unknown, whatever the preset,
// until the record is resolved or its retention and horizon have ended; the handler does
// not run again. In a transactional store its effects are rolled back.
//
// The reason is kept in the record for operators, who are the only ones to read it:
// [reprise.Attempt.Unknown] says in which form. Like the functions above it reports
// whether there is an exchange to decide about. It is also false, and decides nothing,
// for a handler that runs without a claim (Config.FailOpen): no record can refuse its
// retries.
//
// If the record cannot be written, the response has the mark of an unrecorded one: a
// retry may run again.
func Unknown(ctx context.Context, reason string) bool {
	x := exchangeOf(ctx)
	if x != nil && x.attempt.Unprotected() {
		x.inVain(ctx, "Unknown", vainUnprotected)
		return false
	}
	return decideFor(ctx, "Unknown", func(x *Exchange) { x.decision, x.reason = OutcomeUnknown, strings.Clone(reason) })
}

// OmitBody records the response without its body, for bodies that must not be stored:
// neither the record nor a blob has it. Retries get the substitute of Config.Oversize. A
// body over Limits.ResponseBody may go through a temporary file (see [Offloading]), which
// is encrypted.
func OmitBody(ctx context.Context) bool {
	return decideFor(ctx, "OmitBody", func(x *Exchange) { x.omitBody = true })
}

// ClientLeft reports whether the client left while it was sent a body that is too long to
// be kept. The rest of the body has no use then: a handler that ends for that reason has
// finished, and its status decides as that of a whole response does (R35). A handler that
// passes on the response of another service need not call Unknown. One whose operation is
// not done by then says so with [Release] or Unknown.
func ClientLeft(ctx context.Context) bool {
	x := exchangeOf(ctx)
	return x != nil && x.left.Load()
}

func decideFor(ctx context.Context, function string, decide func(*Exchange)) bool {
	x := exchangeOf(ctx)
	switch {
	case x == nil:
		outside.warn(ctx, nil, function, "", vainOutside)
		return false
	case !x.decide(decide):
		x.inVain(ctx, function, vainLate)
		return false
	default:
		return true
	}
}

// decide takes a decision, unless the response of the handler was taken.
func (x *Exchange) decide(decide func(*Exchange)) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.finished {
		decide(x)
	}
	return !x.finished
}

// exchangeOf returns the exchange of a handler's context, or of its framework's context
// (see [store.ContextKey]), and nil outside of one.
func exchangeOf(ctx context.Context) *Exchange {
	x, ok := ctx.Value(exchangeKey{}).(*Exchange)
	if !ok {
		if run, found := store.RunContext(ctx); found {
			x, _ = run.Value(exchangeKey{}).(*Exchange)
		}
	}
	return x
}

// Runs reports whether ctx is the context of this exchange, or one made of it. A
// framework that reuses its request contexts may have given the adapter's to another
// request, while a handler outlived a timeout: the adapter must then neither read nor
// restore anything in it.
func (x *Exchange) Runs(ctx context.Context) bool {
	of, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return of == x
}

type exchangeKey struct{}

// exchangeContext is the context of a handler: that of the attempt, with its exchange.
// One pointer, so that an interface holds it without memory of its own.
type exchangeContext struct{ x *Exchange }

// Deadline implements [context.Context].
func (c exchangeContext) Deadline() (time.Time, bool) { return c.x.attempt.Context().Deadline() }

// Done implements [context.Context].
func (c exchangeContext) Done() <-chan struct{} { return c.x.attempt.Context().Done() }

// Err implements [context.Context].
func (c exchangeContext) Err() error { return c.x.attempt.Context().Err() }

// Value implements [context.Context].
func (c exchangeContext) Value(key any) any {
	if key == (exchangeKey{}) {
		return c.x
	}
	return c.x.attempt.Context().Value(key)
}

// exit is how a handler left, as the middleware saw it.
type exit uint8

// The exits. The client got a whole response with the first two.
const (
	returned  exit = iota // it returned
	cancelled             // likewise, with a 4xx after the engine had cancelled it
	panicked              // it panicked before it wrote anything
	cut                   // its response was cut short, or it took the connection
)

// exitOf returns how a handler left. Its client may have left before, which cancels no
// run: the causes are those of the engine.
func (x *Exchange) exitOf(e *end) exit {
	switch {
	case e.Panicked:
		return panicked
	case e.Cut, e.Status < 200, e.Status > 999:
		return cut
	case e.meaning >= 400 && e.meaning <= 499 && x.attempt.Cancelled() != nil:
		return cancelled
	default:
		return returned
	}
}

// meaning returns the status by which a response is kept or released: its own, or the one
// of its Grpc-Status, because every response of gRPC has the status 200.
func (x *Exchange) meaning(status int) int {
	lines := group(x.scratch.trailers, "Grpc-Status")
	if lines == nil {
		lines = group(x.scratch.committed, "Grpc-Status")
	}
	if lines == nil || status != 200 {
		return status
	}
	code, err := strconv.Atoi(lines[0].Value)
	switch {
	case err != nil || code < 0 || code >= len(grpcStatuses):
		return 500
	case code == 0:
		return status
	default:
		return grpcStatuses[code]
	}
}

// resolution is how an attempt is resolved.
type resolution uint8

const (
	keep      resolution = iota // record the response
	keepEmpty                   // record a 500 without a body in its place
	keepCut                     // record that there is no complete response
	release                     // release the claim
	unknown                     // record that the outcome is unknown
)

// resolve decides how an attempt is resolved (R31, R33, R34; presets in package reprise).
// The first row that matches wins.
//
//	exit                   decided by            → resolution
//	any                    the handler: release  → release
//	any                    the handler: unknown  → unknown
//	panicked               the preset            → release | keepEmpty
//	cut                    the preset            → release | keepCut
//	returned, cancelled    the handler: keep     → keep
//	returned, cancelled    Config.Keep.Decide    → keep | release | unknown
//	cancelled              the preset            → release | keep
//	401 407 425 429        –                     → release
//	307 308 408 499 5xx    the preset            → release | keep
//	everything else        –                     → keep
//
// 499 says that the server cancelled the operation, and a 4xx of a run that was cancelled
// may describe the effect of the cancellation: something may have been processed.
func resolve(e exit, status int, preset reprise.Preset, handler, policy Decision) resolution {
	byPreset := func(atMostOnce resolution) resolution {
		if preset == reprise.AtMostOnce {
			return atMostOnce
		}
		return release
	}
	switch {
	case handler == ReleaseKey:
		return release
	case handler == OutcomeUnknown:
		return unknown
	case e == panicked:
		return byPreset(keepEmpty)
	case e == cut:
		return byPreset(keepCut)
	case handler == KeepResponse:
		return keep
	case policy == KeepResponse:
		return keep
	case policy == ReleaseKey:
		return release
	case policy == OutcomeUnknown:
		return unknown
	}
	switch {
	case e == cancelled:
		return byPreset(keep)
	case status == 401, status == 407, status == 425, status == 429: // nothing was processed
		return release
	case status == 307, status == 308, status == 408, status == 499, status >= 500 && status <= 599: // something may have been
		return byPreset(keep)
	default:
		return keep
	}
}

// Keeps reports whether a whole response with this status and no body is kept, unless its
// handler decides otherwise or was cancelled by the engine. If Config.Keep.Decide panics,
// the attempt ends as if the handler did.
func (g *Guard) Keeps(status int) (kept bool) {
	defer func() {
		if recover() != nil {
			kept = g.cfg.Preset == reprise.AtMostOnce
		}
	}()
	policy := ByPreset
	if g.cfg.Keep.Decide != nil {
		policy = g.cfg.Keep.Decide(Ending{Status: status})
	}
	return resolve(returned, status, g.cfg.Preset, ByPreset, policy) == keep
}
