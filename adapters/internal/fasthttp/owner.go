package reprisefasthttp

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// ownership says whether a request context still serves the request of a run: fasthttp
// and its hosts give a context to another request while a chain that outlived a timeout
// still has it.
//
// Connection, number and time name the request, whatever a handler does to its values:
// the server of fasthttp numbers the requests of a connection, and a host that calls
// RequestCtx.Init, as adaptor.FiberApp does, gives each request a separate connection. A
// context that has none was made by hand. There the token names the request, which is the
// context of the run among the values of the request.
type ownership struct {
	ctx     *fasthttp.RequestCtx
	x       *protocol.Exchange
	conn    uint64
	number  uint64
	at      time.Time
	outside any // the value under the key of the token, of an outer run or nil
}

// own makes ctx serve the run of x.
func own(ctx *fasthttp.RequestCtx, x *protocol.Exchange) ownership {
	o := ownership{ctx, x, ctx.ConnID(), ctx.ConnRequestNum(), ctx.Time(), ctx.UserValue(store.ContextKey)}
	ctx.SetUserValue(store.ContextKey, x.Context())
	return o
}

// holds reports whether the context still serves the request of the run.
func (o *ownership) holds() bool {
	ctx := o.ctx
	return ctx.ConnID() == o.conn && ctx.ConnRequestNum() == o.number && ctx.Time().Equal(o.at) &&
		(o.conn > 0 || ctx.UserValue(store.ContextKey) == o.x.Context())
}

// end gives the values of the request back as they were.
func (o *ownership) end() {
	if o.outside == nil {
		o.ctx.RemoveUserValue(store.ContextKey)
		return
	}
	o.ctx.SetUserValue(store.ContextKey, o.outside)
}
