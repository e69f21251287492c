package protocol

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/store"
)

// This file calls the functions of a policy, and scope functions. One that panics must
// never leave a key held (R33b): before the handler its panic is an error.

// panicError says that a function of a policy, or a scope function, panicked. The
// observer gets it as the error of a refused request.
type panicError struct {
	function string // "Config.Fingerprint.Func", "scope", …
	value    any    // the panic value
	where    string // the file and line
}

// Error implements error. It shows the value of the panic, or, after withoutKey, what is
// in its place.
func (e *panicError) Error() string {
	return fmt.Sprintf("reprise: %s panicked at %s: %v", e.function, e.where, e.value)
}

// recovered makes a panic of a function the error of its caller. It is deferred.
func recovered(function string, err *error) {
	if value := recover(); value != nil {
		*err = &panicError{function, value, panicSite()}
	}
}

// panicSite returns where the panic that is being recovered was raised.
func panicSite() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

// readable returns the error of a function whose panics are recovered. Its text is read
// to report it: a panic of that counts as one of the function.
func readable(err error) error {
	if err != nil {
		_ = err.Error()
	}
	return err
}

// codeOf returns the code for an error of a user's function, which is otherwise unless
// the function panicked.
func codeOf(err error, otherwise Code) Code {
	var panicked *panicError
	if errors.As(err, &panicked) {
		return CodeInternalError
	}
	return otherwise
}

// skips reports whether the policy does not concern a request. req is a copy, so that the
// request of a guard without such a function stays off the heap.
func (g *Guard) skips(ctx context.Context, req Request) (skip bool, err error) {
	defer recovered("Config.Skip", &err)
	return g.cfg.Skip(ctx, &req), nil
}

// fingerprint returns the fingerprint of a request, with the fields that the policy adds.
func (g *Guard) fingerprint(req *Request, key string, body []byte) (fp store.Fingerprint, err error) {
	switch {
	case g.cfg.Fingerprint.Func == nil:
		fp, err = DefaultFingerprint(req, key, body)
	case len(g.omit) > 0:
		fp = canonicalJSON(req, key, body, g.omit)
	default:
		fp, err = g.ownFingerprint(*req, key, body)
	}
	if err != nil || len(g.cfg.Fingerprint.Headers) == 0 {
		return fp, err
	}
	return withFields(fp, req, g.cfg.Fingerprint.Headers), nil
}

func (g *Guard) ownFingerprint(req Request, key string, body []byte) (fp store.Fingerprint, err error) {
	defer recovered("Config.Fingerprint.Func", &err)
	fp, err = g.cfg.Fingerprint.Func(&req, key, body)
	return fp, readable(err)
}

// reportBeside notifies the observer of an error beside a complete response that is no
// failure (R33d): retries get a replay of a response that the handler may not have meant
// to send. A response that is a failure says so itself.
func (x *Exchange) reportBeside(e *end) {
	if e.Reported == nil || e.exit != returned || e.meaning >= 400 {
		return
	}
	err := x.guard.besideText(e.Reported, string(x.scratch.key))
	x.guard.report(x.Context(), reprise.Event{Kind: EventReported, ID: x.attempt.ID(), Err: err})
}

// besideText returns err for the observer. Its method may panic.
func (g *Guard) besideText(err error, key string) (shown error) {
	defer recovered("the Error method of a reported error", &shown)
	return withoutKey(err, key)
}

// annotation returns the text to keep beside the response of a handler with ctx.
func (g *Guard) annotation(ctx context.Context) string {
	if g.cfg.Keep.Annotate == nil {
		return ""
	}
	note, err := g.ownAnnotation(ctx)
	switch {
	case err != nil:
		g.report(ctx, reprise.Event{Kind: EventPanic, Err: withoutKey(err, "")})
		return ""
	case !record.ValidAnnotation(note):
		return ""
	default:
		return note
	}
}

func (g *Guard) ownAnnotation(ctx context.Context) (note string, err error) {
	defer recovered("Config.Keep.Annotate", &err)
	return g.cfg.Keep.Annotate(ctx), nil
}

// problem returns the response for a problem.
func (g *Guard) problem(ctx context.Context, req *Request, code Code) Response {
	if g.cfg.Problems.Write == nil && !req.isCall() {
		return g.problems.answer(code)
	}
	return g.write(ctx, req, g.problems.of(code))
}

// write returns the response for p in the form of the policy. If the policy's function
// panics, it is the standard form.
func (g *Guard) write(ctx context.Context, req *Request, p Problem) Response {
	switch {
	case req.isCall():
		own := p
		return Response{problem: &own}
	case g.cfg.Problems.Write == nil:
		return p.Response()
	}
	r, err := g.ownProblem(ctx, *req, p)
	if err != nil {
		g.report(ctx, reprise.Event{Kind: EventPanic, Err: withoutKey(err, "")})
		return p.Response()
	}
	return p.completed(r)
}

func (g *Guard) ownProblem(ctx context.Context, req Request, p Problem) (r Response, err error) {
	defer recovered("Config.Problems.Write", &err)
	return g.cfg.Problems.Write(ctx, &req, p), nil
}

// ErrUnscoped is the error with which a scope function puts a key in the one key space
// that all clients share. Anyone who learns another client's key can then replay its
// response. Every adapter's Unscoped returns it.
var ErrUnscoped = errors.New("reprise: the key space is shared by all clients")

// Why a scope is refused.
var (
	errScopeEmpty   = fmt.Errorf("%w: the scope function returned an empty name", store.ErrInvalid)
	errScopeShared  = fmt.Errorf("%w: KeyContent needs a scope, because equal requests of two clients would be one operation without it", store.ErrInvalid)
	errScopeControl = fmt.Errorf("%w: the scope function returned a name with a control byte", store.ErrInvalid)
)

// principalOf returns the name that scope returns, or why it is refused.
func principalOf(scope func() (string, error)) (name string, err error) {
	defer recovered("the scope function", &err)
	name, err = scope()
	switch {
	case errors.Is(err, ErrUnscoped):
		return record.SharedScope, nil
	case err != nil:
		return "", readable(err)
	case name == "":
		return "", errScopeEmpty
	}
	for i := range len(name) {
		if name[i] < ' ' || name[i] == 0x7f {
			return "", errScopeControl
		}
	}
	return name, nil
}
