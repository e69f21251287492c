package protocol

import "context"

// A handler may decide for its own request (R36), with the context that it was given. Each function reports whether there is an
// exchange to decide about: false outside of one, such as for a request without a key, and after it ended.

// Keep records the response whatever its status, so that it is replayed.
func Keep(ctx context.Context) bool {
	return decideFor(ctx, func(x *Exchange) { x.decision = KeepOutcome })
}

// Release forgets the claim whatever the response, so that the next request with the key runs.
func Release(ctx context.Context) bool {
	return decideFor(ctx, func(x *Exchange) { x.decision = ReleaseKey })
}

// OmitBody records the response without its body, for bodies that must not be stored. Retries get what Config.Oversize says.
func OmitBody(ctx context.Context) bool {
	return decideFor(ctx, func(x *Exchange) { x.omitBody = true })
}

func decideFor(ctx context.Context, decision func(*Exchange)) bool {
	x, ok := ctx.Value(exchangeKey{}).(*Exchange)
	if !ok {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	decision(x)
	return true
}

type exchangeKey struct{}

// exchangeContext is the context of a handler, with its exchange.
type exchangeContext struct {
	context.Context
	x *Exchange
}

// Value implements [context.Context].
func (c *exchangeContext) Value(key any) any {
	if key == (exchangeKey{}) {
		return c.x
	}
	return c.Context.Value(key)
}
