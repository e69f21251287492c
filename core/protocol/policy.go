package protocol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
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

// guarded returns the result of a function of the policy, or its panic as an error.
func guarded[T any](function string, call func() T) (result T, err error) {
	defer recovered(function, &err)
	return call(), nil
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

// fingerprint returns the fingerprint of a request, with the fields that the policy adds.
func (g *Guard) fingerprint(req *Request, key string, body []byte) (fp store.Fingerprint, err error) {
	switch {
	case g.cfg.Fingerprint.Func == nil:
		fp = contentFingerprint(req, key, body)
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
func (x *Exchange) reportBeside(reported error) {
	shown, err := guarded("the Error method of a reported error", func() error { return withoutKey(reported, string(x.scratch.key)) })
	x.guard.report(x.Context(), reprise.Event{Kind: EventReported, ID: x.attempt.ID(), Err: cmp.Or(err, shown)})
}

// annotation returns the text to keep beside the response of a handler with ctx.
func (g *Guard) annotation(ctx context.Context) string {
	if g.cfg.Keep.Annotate == nil {
		return ""
	}
	note, err := guarded("Config.Keep.Annotate", func() string { return g.cfg.Keep.Annotate(ctx) })
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

// problem returns the response for a problem.
func (g *Guard) problem(ctx context.Context, req *Request, code Code) Response {
	if g.cfg.Problems.Write == nil && !req.isCall() {
		return g.problems.ready[code].response
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
	own := *req
	r, err := guarded("Config.Problems.Write", func() Response { return g.cfg.Problems.Write(ctx, &own, p) })
	if err != nil {
		g.report(ctx, reprise.Event{Kind: EventPanic, Err: withoutKey(err, "")})
		return p.Response()
	}
	return p.completed(r)
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

// withheld stands in a record in the place of a description with the key in it.
const withheld = "(withheld: it contained the key)"

// description returns what Config.Describe tells operators about a request with a key.
func (g *Guard) description(ctx context.Context, req *Request, key string) string {
	own := *req // so that the request of a guard without such a function stays off the heap
	text, err := guarded("Config.Describe", func() string { return g.cfg.Describe(ctx, &own) })
	switch {
	case err != nil: // it panicked
		g.report(ctx, reprise.Event{Kind: EventPanic, Err: withoutKey(err, key)})
	case holdsKey(text, key):
		g.report(ctx, reprise.Event{Kind: EventDescription})
		return withheld
	}
	return text
}

// withoutKey returns the error of a function of the policy, for the observer, without its
// text if that has the key in it. The key is empty where it is not known: then the value
// of a panic, which the function may have made of any part of the request, is left out.
func withoutKey(err error, key string) error {
	var panicked *panicError
	if _, ours := err.(keyError); ours { //nolint:errorlint // one that a function wrapped may have more in its text
		return err
	}
	switch {
	case errors.As(err, &panicked):
		if key == "" {
			panicked.value = withoutValue(panicked.value)
		} else if holdsKey(fmt.Sprint(panicked.value), key) {
			panicked.value = withheld
		}
	case key != "" && holdsKey(err.Error(), key):
		return errors.New(withheld)
	}
	return err
}

// withoutValue returns the type of a panic's value. An error of the runtime, such as that
// of a nil pointer, stays: it has nothing of a request.
func withoutValue(value any) any {
	if fault, ok := value.(runtime.Error); ok {
		return fault
	}
	return fmt.Sprintf("a %T, which may have the key in it", value)
}

// quoted escapes a key as a quoted string of RFC 9651 has it.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// leastWithheld is the length of the shortest key that is withheld, in bytes. A shorter
// one is in many texts that are not about it.
const leastWithheld = 8

// holdsKey reports whether a text has a key in it that is to be withheld: decoded, or as
// the header, the path or the query of its request may have it.
func holdsKey(text, key string) bool {
	if len(key) < leastWithheld {
		return false
	}
	return strings.Contains(text, key) || strings.Contains(text, quoted.Replace(key)) ||
		strings.Contains(unescaped(text), key) || strings.Contains(unescaped(strings.ReplaceAll(text, "+", " ")), key)
}

// unescaped decodes what is percent-encoded in a text. A "%" that encodes nothing stays.
func unescaped(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				c, i = byte(n), i+2
			}
		}
		decoded = append(decoded, c)
	}
	return string(decoded)
}
