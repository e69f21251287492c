// Package reprisefasthttp is the adapter of frameworks whose server is fasthttp, for the
// modules in this folder's parent: it knows fasthttp, and a framework by its functions.
//
// Its tests are those of adapters/fiber and adapters/fiber3, which serve it natively, on
// the fasthttp of each.
package reprisefasthttp

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
)

// Framework has the functions of a framework whose requests are of type C.
type Framework[C any] struct {
	Server     func(C) *fasthttp.Server
	RequestCtx func(C) *fasthttp.RequestCtx
	Method     func(c C, override ...string) string

	// Context returns the context that the framework gives to handlers, and SetContext
	// replaces it.
	Context    func(C) context.Context
	SetContext func(C, context.Context)

	// Pooled says that the framework's own context is a [context.Context], and that it may
	// serve another request while the response of this one is still being streamed.
	Pooled bool

	// Next runs the rest of the chain. Respond turns an error of the chain into a response,
	// as the framework does.
	Next    func(C) error
	Respond func(C, error)

	// Abandoned reports whether a layer did not wait for the rest of the chain, and may
	// write the response meanwhile. Nil for a framework without such a layer.
	Abandoned func(C) bool

	// Unrouted reports whether no route answers the request of a chain that ended in err. It
	// is set for a framework that runs its layers, but no route, for a request that fasthttp
	// could not read to its end, and nil for others.
	Unrouted func(c C, err error) bool
}

// Middleware returns a handler that runs the rest of its chain once for each key.
func (f *Framework[C]) Middleware(guard *protocol.Guard, scope func(C) (string, error)) func(C) error {
	return func(c C) error {
		ctx := f.RequestCtx(c)
		in := read(ctx, f.Server(c), f.Unrouted != nil)
		defer in.release() // not before the response: a problem may still read the request
		given := f.Context(c)
		if f.Pooled {
			given = lend(given, ctx)
			defer takeBack(given)
		}
		admission := guard.Admit(given, in.request(f.Method(c)), func() (string, error) { return principal(in, scope, c) })
		switch {
		case admission.Pass:
			in.putBack(admission.Body)
			return f.Next(c)
		case admission.Exchange != nil:
			return f.run(c, in, ctx, admission.Exchange)
		default:
			if !in.discard(admission.Response) {
				ctx.SetConnectionClose()
			}
			write(&ctx.Response, admission.Response)
			return nil
		}
	}
}
