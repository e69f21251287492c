package protocol

import (
	"context"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// A request has one policy (R51): in a chain of handlers one guard decides about it, and
// another inside of that one refuses it. A request that a handler makes in its own
// process, with its context and another key, is a separate operation.

// within judges a request whose context belongs to a run. It passes if the run is that of
// the same operation by g: the middleware stands twice in the chain, and must not wait
// for itself. The error says that the operation runs already by another policy.
//
// body is nil until it was read, which it was if the guard around needs it.
func (g *Guard) within(ctx context.Context, req *Request, body []byte, principal, key string) (passes bool, err error) {
	view, inside := reprise.AttemptFrom(ctx)
	if !inside {
		return false, nil
	}
	same := view.ID() == store.DeriveID(principal, g.cfg.Endpoint, key)
	x := exchangeOf(ctx)
	switch {
	case x != nil && x.decidesAbout(req, body):
		if x.guard == g {
			return same, nil
		}
		return false, fmt.Errorf("reprise: %s is inside of %s, and one policy must decide about a request: protect each route by one guard", g.label(), x.guard.label())
	case same && ctx.Err() == nil && (x == nil || x.attempt.View() != view):
		return false, fmt.Errorf("reprise: %s is inside of a run of job.Do for the same operation: use one of the two", g.label())
	default:
		return false, nil
	}
}

// insideBodyKey reports whether the request is in a run whose guard found its key in the
// body, and would find it there again.
func insideBodyKey(ctx context.Context) bool {
	x := exchangeOf(ctx)
	return x != nil && x.guard.cfg.Key.readsBody()
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
