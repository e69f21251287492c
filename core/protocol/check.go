package protocol

import (
	"context"
	"errors"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol/internal/record"
)

// check checks a request with one key line, or none where its key may be in another
// place, and fills in the operation to begin. The scratch, which then has the body, is
// nil if the request passes or has a response instead.
//
// The order of the checks (R1): those that the header decides come before the body is
// read, so that its client need not send it (R28).
//
//	                      key in the header      key in the query       key in the body
//	grammar of the key    1                      1, and after presence  1, of a key line
//	media type                                                          2
//	presence              before                 2                      6
//	scope                 2                      3                      3, or 7 if the key is optional
//	a guard around (R51)  3                      4                      8
//	body                  4                      5                      4
//	source                                                              5
//	fingerprint           5                      6                      9
func (g *Guard) check(
	ctx context.Context, req *Request, scope func() (string, error), line string, lines int, op *reprise.Operation,
) (*scratch, []byte, Admission) {
	var key string
	var err error
	if lines > 0 {
		if key, err = g.grammar.parse(line); err != nil {
			return nil, nil, g.refuseKey(ctx, req, g.cfg.Key.header(), err)
		}
	}
	req.cutTarget()
	k := &g.cfg.Key
	asks := k.readsBody() && (key == "" || k.origin != ofContent)
	var misread error
	switch {
	case k.origin == ofQuery:
		if key, err = g.agreed(req, nil, key); err != nil {
			return nil, nil, g.refuseSource(ctx, req, err)
		}
		if key == "" {
			return nil, nil, g.unkeyed(ctx, req, nil)
		}
	case asks:
		misread = k.misread(req)
		asks = misread == nil || key == ""
		if misread != nil && key == "" && (req.Length > 0 || len(req.Bytes) > 0 || req.Form != nil) {
			return nil, nil, g.refuseSource(ctx, req, misread)
		}
	}
	var principal string
	if key != "" || g.cfg.Required {
		if principal, err = g.principal(scope, key); err != nil {
			return nil, nil, g.refuse(ctx, req, codeOf(err, CodeScopeMissing), err)
		}
	}
	late := asks || insideBodyKey(ctx)
	if !late {
		if answer, decided := g.nested(ctx, req, nil, principal, key); decided {
			return nil, nil, answer
		}
	}
	s := scratches.Get().(*scratch)
	body, code, err := s.readBody(req, g.cfg.Limits.RequestBody)
	if code != "" {
		s.free()
		return nil, nil, g.refuse(ctx, req, code, err)
	}
	if late {
		answer, decided := g.checkLate(ctx, req, scope, body, asks, misread, &principal, &key)
		if decided {
			if answer.Body != nil {
				s.request = nil // its memory is the handler's
			}
			s.free()
			return nil, nil, answer
		}
	}
	fingerprint, err := g.fingerprint(req, key, body)
	if err != nil {
		s.free()
		return nil, nil, g.refuse(ctx, req, codeOf(err, CodeRequestInvalid), err)
	}
	op.Scope, op.Key, op.Fingerprint, op.Description = principal, key, fingerprint, g.description(ctx, req, key)
	return s, body, Admission{}
}

// checkLate makes the checks that need the body, and reports whether they decided about
// the request. It fills in the principal and the key where they are empty.
func (g *Guard) checkLate(
	ctx context.Context, req *Request, scope func() (string, error), body []byte, asks bool, misread error, principal, key *string,
) (answer Admission, decided bool) {
	var err error
	if asks {
		switch {
		case misread != nil && (len(body) > 0 || g.cfg.Key.origin != ofMember):
			return g.refuseSource(ctx, req, misread), true
		case misread == nil:
			*key, err = g.agreed(req, body, *key)
		}
		if err != nil {
			return g.refuseSource(ctx, req, err), true
		}
		if *key == "" {
			return g.unkeyed(ctx, req, body), true
		}
	}
	if *principal == "" {
		if *principal, err = g.principal(scope, *key); err != nil {
			return g.refuse(ctx, req, codeOf(err, CodeScopeMissing), err), true
		}
	}
	return g.nested(ctx, req, body, *principal, *key)
}

// principal returns the name that scope returns, or why it is refused for a key; the key
// is empty, or has contentKey before it, if it is the content of the request.
func (g *Guard) principal(scope func() (string, error), key string) (name string, err error) {
	name, err = principalOf(scope)
	fromHeader := key != "" && !strings.HasPrefix(key, contentKey)
	if err == nil && name == record.SharedScope && g.cfg.Key.origin == ofContent && !fromHeader {
		return "", errScopeShared
	}
	return name, err
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

// refuseSource refuses a request whose source of the key is wrong.
func (g *Guard) refuseSource(ctx context.Context, req *Request, err error) Admission {
	k := &g.cfg.Key
	switch code := codeOf(err, CodeKeyInvalid); {
	case code == CodeInternalError:
		return g.refuse(ctx, req, code, err)
	case errors.Is(err, errKeysDiffer):
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

// nested judges a request inside of another's run, and reports whether that decided about
// it.
func (g *Guard) nested(ctx context.Context, req *Request, body []byte, principal, key string) (answer Admission, decided bool) {
	passes, err := g.within(ctx, req, body, principal, key)
	switch {
	case err != nil:
		return g.refuse(ctx, req, CodeInternalError, err), true
	case passes:
		return passing(req, body), true
	default:
		return Admission{}, false
	}
}

// passing passes a request. Its handler reads the body again, if it was read, except for
// a form that was parsed before: it has no bytes.
func passing(req *Request, body []byte) Admission {
	if body == nil || req.isCall() || req.Form != nil || hasParts(req.parsedForm()) {
		return Admission{Pass: true}
	}
	return Admission{Pass: true, Body: &Body{data: body}}
}
