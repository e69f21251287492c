package reprisefasthttp

import (
	"context"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// lent is a context that has the values of a request until its handlers return. A
// streamed response is recorded after that, when another request may have the values.
type lent struct {
	context.Context

	over atomic.Bool
}

// lend returns given, or a lent context if given reads its values from the request.
func lend(given context.Context, ctx *fasthttp.RequestCtx) context.Context {
	type probe struct{}
	if given == context.Background() {
		return given
	}
	ctx.SetUserValue(probe{}, true)
	defer ctx.RemoveUserValue(probe{})
	if given.Value(probe{}) == nil {
		return given
	}
	return &lent{Context: given}
}

// takeBack ends the use of a lent context.
func takeBack(ctx context.Context) {
	if l, ok := ctx.(*lent); ok {
		l.over.Store(true)
	}
}

// Value implements [context.Context].
func (l *lent) Value(key any) any {
	if l.over.Load() {
		return nil
	}
	return l.Context.Value(key)
}
