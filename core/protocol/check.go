package protocol

import (
	"context"
	"errors"
	"fmt"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/store"
)

// check checks a request with one key line, or none where its key may be in another
// place, and fills in the operation to begin. It returns the body of the handler, and the
// scratch that has it, which is nil if the request passes or has a response instead.
//
// The order of the checks (R1): those that the header decides come before the body is
// read, so that its client need not send it (R28). A call's message has its key where the
// query of a request would: it is known before it is encoded.
//
//	                             key in the header   in the query   in the body
//	grammar  of a key line       1                   1              1
//	media    type of the body                                       2
//	source   presence, grammar   before              2              5
//	caller   scope               2                   3              3, or 6 if the key is optional
//	around   a guard (R51)       3                   4              7
//	content  the body            4                   5              4
//	digest   fingerprint         5                   6              8
func (g *Guard) check(
	ctx context.Context, req *Request, scope func() (string, error), line string, lines int, op *reprise.Operation,
) (*scratch, []byte, Admission) {
	req.cutTarget()
	c := checking{g: g}
	if c.grammar(ctx, req, line, lines) &&
		c.media(ctx, req) &&
		c.source(ctx, req) && c.caller(ctx, req, scope) && c.around(ctx, req) && // those of the three that need no body
		c.content(ctx, req) &&
		c.source(ctx, req) && c.caller(ctx, req, scope) && c.around(ctx, req) && // and the others
		c.digest(ctx, req) {
		op.Scope, op.Key, op.Fingerprint, op.Description = c.principal, c.key, c.fingerprint, g.description(ctx, req, c.key)
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

// checking is a request under check. Its methods are the rows of the table of
// [Guard.check]: each makes one check, and returns false if that decided about the
// request. A check that has been made, or has to wait for the body, returns true.
//
// The request is a parameter of theirs, not a field: so it stays off the heap.
type checking struct {
	g           *Guard
	key         string // as far as it is known
	asked       bool   // the source was asked for the key, or need not be
	misread     error  // why the source cannot read the body, if there is one
	principal   string
	alone       bool     // no guard around this one decides about the request
	scratch     *scratch // nil until the body is read
	body        []byte
	fingerprint store.Fingerprint
	answer      Admission // of the check that decided
}

func (c *checking) decided(answer Admission) bool {
	c.answer = answer
	return false
}

// grammar reads the key line, if there is one.
func (c *checking) grammar(ctx context.Context, req *Request, line string, lines int) bool {
	k := &c.g.cfg.Key
	if lines > 0 {
		var err error
		if c.key, err = c.g.grammar.parse(line); err != nil {
			return c.decided(c.g.refuseKey(ctx, req, k.header(), err))
		}
	}
	c.asked = k.origin == ofHeader || k.origin == ofContent && c.key != ""
	return true
}

// media refuses a body that the source cannot read. A request with a key in its header
// may have any body.
func (c *checking) media(ctx context.Context, req *Request) bool {
	if c.asked {
		return true
	}
	switch err := c.g.cfg.Key.misread(req); {
	case err == nil:
	case c.key != "":
		c.asked = true
	case req.Length > 0 || len(req.Bytes) > 0 || req.Form != nil:
		return c.decided(c.g.refuseSource(ctx, req, "", err))
	default:
		c.misread = err
	}
	return true
}

// source asks the source for the key, which must be that of the header, if there are two.
// A request without a key ends here.
func (c *checking) source(ctx context.Context, req *Request) bool {
	k := &c.g.cfg.Key
	if c.asked || c.scratch == nil && k.needsBody(req) {
		return true
	}
	c.asked = true
	if c.key != "" && k.origin != ofContent && k.readsBody() && req.bytesGone() {
		return true // the key in the header counts alone, as for a form of several parts
	}
	err, inHeader := c.misread, c.key
	if err == nil {
		c.key, err = c.g.agreed(req, c.body, inHeader)
	} else if len(c.body) == 0 && k.origin == ofMember {
		err = nil
	}
	switch {
	case err != nil:
		return c.decided(c.g.refuseSource(ctx, req, inHeader, err))
	case c.key == "":
		return c.decided(c.g.unkeyed(ctx, req, c.body))
	default:
		return true
	}
}

// caller asks for the principal once it is certain that one is needed.
func (c *checking) caller(ctx context.Context, req *Request, scope func() (string, error)) bool {
	if c.principal != "" || c.key == "" && !c.g.cfg.Required {
		return true
	}
	var err error
	if c.principal, err = c.g.principalFor(scope, c.key); err != nil {
		return c.decided(c.g.refuseCaller(ctx, req, c.key, err))
	}
	return true
}

// around judges a request inside of another's run.
func (c *checking) around(ctx context.Context, req *Request) bool {
	if c.alone || c.scratch == nil && (!c.asked || insideBodyKey(ctx)) {
		return true
	}
	switch passes, err := c.g.within(ctx, req, c.body, c.principal, c.key); {
	case err != nil:
		return c.decided(c.g.refuse(ctx, req, CodeInternalError, err))
	case passes:
		return c.decided(passing(req, c.body))
	default:
		c.alone = true
		return true
	}
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

// principalFor returns the name that scope returns, or why it is refused for a key; the
// key is empty, or has contentKey before it, if it is the content of the request.
func (g *Guard) principalFor(scope func() (string, error), key string) (name string, err error) {
	name, err = principalOf(scope)
	fromHeader := key != "" && !strings.HasPrefix(key, contentKey)
	if err == nil && name == record.SharedScope && g.cfg.Key.origin == ofContent && !fromHeader {
		return "", errScopeShared
	}
	return name, err
}

// refuseCaller refuses a request because its scope function failed or named no principal.
// The error may have anything of the request in it; the observer and the log get none
// that has the key.
func (g *Guard) refuseCaller(ctx context.Context, req *Request, key string, err error) Admission {
	code := codeOf(err, CodeScopeMissing)
	reported := withoutKey(err, key)
	if code == CodeScopeMissing && errors.Is(err, store.ErrUnavailable) {
		code, reported = CodeStoreUnavailable, fmt.Errorf("the scope function: %w", reported)
	}
	return g.refuse(ctx, req, code, reported)
}

// errKeysDiffer is the error of a request with two keys that are not the same.
var errKeysDiffer = errors.New("the keys differ")

// agreed returns the key of a request that has inHeader in its header, or "": that of the
// source, if there is one, must be the same.
func (g *Guard) agreed(req *Request, body []byte, inHeader string) (key string, err error) {
	key, found, err := g.sourceKey(req, body)
	switch {
	case err != nil:
		return "", err
	case !found:
		return inHeader, nil
	case inHeader != "" && inHeader != key:
		return "", errKeysDiffer
	default:
		return key, nil
	}
}

// refuseSource refuses a request whose source of the key is wrong. It has inHeader in its
// header, or "".
func (g *Guard) refuseSource(ctx context.Context, req *Request, inHeader string, err error) Admission {
	k := &g.cfg.Key
	differ := errors.Is(err, errKeysDiffer)
	if err = withoutKey(err, inHeader); codeOf(err, "") != "" {
		err = withoutKey(err, "") // the source may have shown another key
	}
	switch code := codeOf(err, CodeKeyInvalid); {
	case code == CodeInternalError:
		return g.refuse(ctx, req, code, err)
	case differ:
		return g.refuseKey(ctx, req, k.header()+" and the "+k.String(), errKeyDiffers)
	default:
		return g.refuseKey(ctx, req, k.String(), err)
	}
}

// unkeyed passes a request without a key, or refuses it where one is required. The
// handler gets the body, if it was read.
func (g *Guard) unkeyed(ctx context.Context, req *Request, body []byte) Admission {
	if g.cfg.Required {
		return g.refuse(ctx, req, CodeKeyMissing, nil)
	}
	return passing(req, body)
}

// passing passes a request. Its handler reads the body again, if it was read. A form that
// the framework parsed has no bytes.
func passing(req *Request, body []byte) Admission {
	if body == nil || req.isCall() || req.Form != nil {
		return Admission{Pass: true}
	}
	return Admission{Pass: true, Body: &Body{data: req.forHandler(body)}}
}
