package protocol

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
)

// A Decision says whether a response is kept or its claim released.
type Decision uint8

// The decisions.
const (
	ByPreset     Decision = iota // leave it to the status and the preset
	KeepResponse                 // record the response and replay it
	ReleaseKey                   // release the claim: the next request runs
)

// A handler may decide for its own request (R36), with the context of the request or with
// the one of its framework. Each function reports whether there is an exchange to decide
// about: there is none for a request without a key, and none after the handler's response
// was taken.

// Keep records the response with any status, so that retries get a replay of it.
func Keep(ctx context.Context) bool {
	return decideFor(ctx, func(x *Exchange) { x.decision = KeepResponse })
}

// Release releases the claim after any response, so that the next request with the key
// runs the handler.
func Release(ctx context.Context) bool {
	return decideFor(ctx, func(x *Exchange) { x.decision = ReleaseKey })
}

// OmitBody records the response without its body, for bodies that must not be stored.
// Retries get the substitute of Config.Oversize.
func OmitBody(ctx context.Context) bool {
	return decideFor(ctx, func(x *Exchange) { x.omitBody = true })
}

func decideFor(ctx context.Context, decide func(*Exchange)) bool {
	x := exchangeOf(ctx)
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.finished {
		return false
	}
	decide(x)
	return true
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
