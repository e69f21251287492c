package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

// check checks a request with one key line, or none where its key may be in another
// place, and fills in the operation to begin. It returns the body of the handler, and the
// scratch that has it, which is nil if the request passes or has a response instead.
//
// The order of the checks (R1) depends on where the key is. Those that the header decides
// come before the body is read, so that its client need not send it (R28).
func (g *Guard) check(
	ctx context.Context, req *Request, scope func() (string, error), line string, lines int, op *reprise.Operation,
) (*scratch, []byte, Admission) {
	if strings.HasPrefix(req.Target, "/") {
		req.Path, req.RawQuery, _ = strings.Cut(req.Target, "?")
	}
	k := &g.cfg.Key
	c := checking{g: g}
	if lines > 0 {
		var err error
		if c.key, err = g.grammar.parse(line); err != nil {
			return nil, nil, g.refuseKey(ctx, req, k.header(), err)
		}
	}
	outer := exchangeOf(ctx)
	nested := outer != nil && outer.guard.cfg.Key.readsBody() // then the guard around is judged by the body
	var ok bool
	switch {
	case k.origin == ofHeader || c.key != "" && (k.origin == ofContent || k.misread(req) != nil): // in the header, alone
		ok = c.caller(ctx, req, scope) &&
			(nested || c.around(ctx, req)) &&
			c.content(ctx, req) &&
			(!nested || c.around(ctx, req)) &&
			c.digest(ctx, req)
	case !k.needsBody(req): // in the query, or in the message of a call, which has its fields before it is encoded
		ok = c.source(ctx, req) &&
			c.caller(ctx, req, scope) &&
			(nested || c.around(ctx, req)) &&
			c.content(ctx, req) &&
			(!nested || c.around(ctx, req)) &&
			c.digest(ctx, req)
	default: // in the body
		ok = c.media(ctx, req) &&
			(c.key == "" && !g.cfg.Required || c.caller(ctx, req, scope)) && // unless the request may pass without a key
			c.content(ctx, req) &&
			c.source(ctx, req) &&
			(c.principal != "" || c.caller(ctx, req, scope)) &&
			c.around(ctx, req) &&
			c.digest(ctx, req)
	}
	if ok {
		op.Scope, op.Key, op.Fingerprint = c.principal, c.key, c.fingerprint
		if g.cfg.Describe != nil {
			op.Description = g.description(ctx, req, c.key)
		}
		return c.scratch, req.forHandler(c.body), Admission{}
	}
	if s := c.scratch; s != nil {
		if c.answer.Body != nil {
			s.request = nil // its memory is the handler's
		}
		s.free()
	}
	return nil, nil, c.answer
}

// checking is a request under check. Its methods are the checks: each returns false if it
// decided about the request.
//
// The request is a parameter of theirs, not a field: so it stays off the heap.
type checking struct {
	g           *Guard
	key         string // as far as it is known
	principal   string
	scratch     *scratch // nil until the body is read
	body        []byte
	fingerprint store.Fingerprint
	answer      Admission // of the check that decided
}

func (c *checking) decided(answer Admission) bool {
	c.answer = answer
	return false
}

// media refuses a body that the source of the key cannot read.
func (c *checking) media(ctx context.Context, req *Request) bool {
	if err := c.g.cfg.Key.misread(req); err != nil && (req.Length > 0 || len(req.Bytes) > 0 || req.Form != nil) {
		return c.decided(c.g.refuseSource(ctx, req, "", err))
	}
	return true
}

// source asks the source for the key, which must be that of the header, if there are two.
// A request without a key ends here.
func (c *checking) source(ctx context.Context, req *Request) bool {
	k := &c.g.cfg.Key
	if c.key != "" && k.origin != ofContent && req.bytesGone() {
		return true // the key in the header counts alone, as for a form of several parts
	}
	err, inHeader := k.misread(req), c.key
	if err == nil {
		c.key, err = c.g.agreed(req, c.body, inHeader)
	} else if len(c.body) == 0 && k.origin == ofMember {
		err = nil
	}
	switch {
	case err != nil:
		return c.decided(c.g.refuseSource(ctx, req, inHeader, err))
	case c.key == "" && c.g.cfg.Required:
		return c.decided(c.g.refuse(ctx, req, CodeKeyMissing, nil))
	case c.key == "":
		return c.decided(passing(req, c.body))
	default:
		return true
	}
}

// caller asks for the principal. The error of a scope function may have anything of the
// request in it; the observer and the log get none that has the key.
func (c *checking) caller(ctx context.Context, req *Request, scope func() (string, error)) bool {
	g := c.g
	var err error
	c.principal, err = principalOf(scope)
	if c.principal == record.SharedScope && g.cfg.Key.origin == ofContent && (c.key == "" || strings.HasPrefix(c.key, contentKey)) {
		err = errScopeShared
	}
	if err == nil {
		return true
	}
	code, reported := codeOf(err, CodeScopeMissing), withoutKey(err, c.key)
	if code == CodeScopeMissing && errors.Is(err, store.ErrUnavailable) {
		code, reported = CodeStoreUnavailable, fmt.Errorf("the scope function: %w", reported)
	}
	return c.decided(g.refuse(ctx, req, code, reported))
}

// around judges a request whose context belongs to a run. A request has one policy (R51):
// in a chain of handlers one guard decides about it, and another inside of that one
// refuses it. It passes if the run is that of the same operation by this guard: the
// middleware stands twice in the chain, and must not wait for itself. A request that a
// handler makes in its own process, with its context and another key, is a separate
// operation.
//
// The body is nil until it was read, which it was if the guard around needs it.
func (c *checking) around(ctx context.Context, req *Request) bool {
	view, inside := reprise.AttemptFrom(ctx)
	if !inside {
		return true
	}
	g, x := c.g, exchangeOf(ctx)
	same := view.ID() == store.DeriveID(c.principal, g.cfg.Endpoint, c.key)
	var err error
	switch decides := x != nil && x.decidesAbout(req, c.body); {
	case decides && x.guard != g:
		err = fmt.Errorf("reprise: %s is inside of %s, and one policy must decide about a request: protect each route by one guard", g.label(), x.guard.label())
	case decides && same:
		return c.decided(passing(req, c.body))
	case !decides && same && ctx.Err() == nil && (x == nil || x.attempt.View() != view):
		err = fmt.Errorf("reprise: %s is inside of a run of job.Do for the same operation: use one of the two", g.label())
	default:
		return true
	}
	return c.decided(g.refuse(ctx, req, CodeInternalError, err))
}

// content reads the body.
func (c *checking) content(ctx context.Context, req *Request) bool {
	c.scratch = scratches.Get().(*scratch)
	body, code, err := c.scratch.readBody(req, c.g.cfg.Limits.RequestBody)
	if code != "" {
		if err == errBodyGone { //nolint:errorlint // it is never wrapped
			c.g.warnConsumed(ctx, req, len(c.scratch.request) > 0)
		}
		return c.decided(c.g.refuse(ctx, req, code, err))
	}
	c.body = body
	return true
}

// digest computes the fingerprint.
func (c *checking) digest(ctx context.Context, req *Request) bool {
	var err error
	if c.fingerprint, err = c.g.fingerprint(req, c.key, c.body); err != nil {
		return c.decided(c.g.refuse(ctx, req, codeOf(err, CodeRequestInvalid), withoutKey(err, c.key)))
	}
	return true
}

// passing passes a request. Its handler reads the body again, if it was read. A form that
// the framework parsed has no bytes.
func passing(req *Request, body []byte) Admission {
	if body == nil || req.isCall() || req.Form != nil {
		return Admission{Pass: true}
	}
	return Admission{Pass: true, Body: &Body{data: req.forHandler(body)}}
}

// decidesAbout reports whether the exchange runs the handler of a request with this key,
// as its own guard reads it.
func (x *Exchange) decidesAbout(req *Request, body []byte) bool {
	key, err := x.guard.keyOf(req, body)
	x.mu.Lock()
	defer x.mu.Unlock()
	return err == nil && !x.finished && x.scratch != nil && string(x.scratch.key) == key
}

// keyOf returns the key of a request, wherever it is.
func (g *Guard) keyOf(req *Request, body []byte) (key string, err error) {
	k := &g.cfg.Key
	line, lines := k.lines(req)
	switch {
	case lines > 0:
		return g.grammar.parse(line)
	case k.origin == ofHeader:
		return "", errKeyEmpty
	case k.misread(req) != nil:
		return "", errKeyOwn
	default:
		return g.agreed(req, body, "")
	}
}

// label names the guard in errors.
func (g *Guard) label() string {
	if g.cfg.Label == "" {
		return "a guard without a name"
	}
	return fmt.Sprintf("guard %q", g.cfg.Label)
}

// KeyMode says which forms of a key are accepted.
type KeyMode uint8

// The modes. In both, a value that starts with a quote is a String of RFC 9651, and two
// notations of one string are the same key.
const (
	// Compat also accepts a bare value of letters, digits and . _ ~ : + / = - only, as most
	// clients send it. It is the same key as its quoted form.
	Compat KeyMode = iota

	// Strict accepts strings only, as the draft of the header requires.
	Strict
)

// The range of Config.Limits.Key, in bytes of the decoded key. A UUID has 36.
const (
	minKeyLimit     = 36
	defaultKeyLimit = 255
)

// maxKeyParameters bounds the parameters after a key, which are checked for syntax and
// then ignored.
const maxKeyParameters = 1024

// keyError describes the mistake of a key, as the end of a sentence that begins with its
// place, such as "The Idempotency-Key header …". It is a constant without input of the
// client.
type keyError string

func (e keyError) Error() string { return "reprise: the key " + string(e) }

// Unwrap makes a keyError match [store.ErrInvalid].
func (keyError) Unwrap() error { return store.ErrInvalid }

const (
	errKeyEmpty    keyError = "is empty"
	errKeyTooLong  keyError = "is too long"
	errKeyBytes    keyError = "contains a control character or a byte that is not US-ASCII"
	errKeyBare     keyError = "is neither a quoted string nor made of letters, digits and . _ ~ : + / = - only"
	errKeyUnquoted keyError = "is not a quoted string (RFC 9651)"
	errKeyString   keyError = "is not one well-formed quoted string (RFC 9651)"
	errKeyRepeated keyError = "appears more than once, under one name or several"

	errKeyQuery   keyError = "is not encoded as the value of a query parameter"
	errKeyJSON    keyError = "cannot be read: the body is not JSON, or can be read in more than one way"
	errKeyObject  keyError = "cannot be read: a value on the way to it is not an object"
	errKeyText    keyError = "is not a string"
	errKeyForm    keyError = "cannot be read: the body is a multipart form, or was parsed as a form before"
	errKeyParts   keyError = "cannot be compared: the body has a boundary, and is not a well-formed multipart form"
	errKeyOwn     keyError = "cannot be read"
	errKeyDiffers keyError = "are not the same key"
)

// ParseKey returns the decoded key of the value of a header field, in quotes or bare, as
// a guard with [Compat] and the longest keys reads it: the key of a person who pastes a
// log or a transcript. The error wraps [store.ErrInvalid] and does not have the key.
func ParseKey(value string) (string, error) {
	return keyGrammar{mode: Compat, max: maxKeyLength}.parse(value)
}

// keyGrammar reads keys.
type keyGrammar struct {
	mode KeyMode
	max  int // the longest decoded key, in bytes
}

// parse returns the decoded key of one field line (R2 to R6, as far as they concern a
// single line). The error is a [keyError]. The key may be a part of line, so a caller
// that keeps it longer than the request copies it. A bare key, and a quoted one without
// escapes and parameters, costs no allocation.
func (g keyGrammar) parse(line string) (key string, err error) {
	line = syntax.TrimSpace(line)
	if line == "" {
		return "", errKeyEmpty
	}
	if len(line) > 2*g.max+maxKeyParameters {
		return "", errKeyTooLong
	}
	for i := range len(line) {
		if line[i] < ' ' || line[i] > '~' {
			return "", errKeyBytes
		}
	}
	switch {
	case line[0] == '"':
		key, err = parseString(line)
	case g.mode == Strict:
		return "", errKeyUnquoted
	case !bareKeyBytes.HaveAll(line):
		return "", errKeyBare
	default:
		key = line
	}
	if err != nil {
		return "", err
	}
	if key == "" {
		return "", errKeyEmpty
	}
	if len(key) > g.max {
		return "", errKeyTooLong
	}
	return key, nil
}

// parseString decodes a String with its parameters. The bytes of line are printable
// US-ASCII, and the first is a quote.
func parseString(line string) (string, error) {
	if inner := line[1:]; strings.IndexByte(inner, '"') == len(inner)-1 && strings.IndexByte(inner, '\\') < 0 && inner != "" {
		return inner[:len(inner)-1], nil // no escapes to decode
	}
	item, err := httpsfv.UnmarshalItem([]string{line})
	if err != nil {
		return "", errKeyString // the parser's own error quotes the client's bytes
	}
	key, ok := item.Value.(string)
	if !ok {
		return "", errKeyString
	}
	return key, nil
}

// bareKeyBytes are those of the keys that clients send without quotes. The tokens of RFC
// 9651 would not do: a bare UUID is a token only if its first digit is a letter.
var bareKeyBytes = syntax.NewByteSet("._~:+/=-")

// lines returns the first field line that carries a key, under any of the names, and how
// many there are.
func (k *KeySource) lines(req *Request) (line string, n int) {
	for _, name := range k.names {
		if values := req.values(name); len(values) > 0 {
			if n == 0 {
				line = values[0]
			}
			n += len(values)
		}
	}
	return line, n
}
