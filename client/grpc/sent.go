package reprisegrpcclient

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// answer records whether the service gave an attempt a status. If the response broke off
// after its header, gRPC invents one.
type answer struct{ begun, complete atomic.Bool }

// missing reports whether the service gave no status. It is false where no response was
// observed.
func (a *answer) missing() bool { return a.begun.Load() && !a.complete.Load() }

type answerOfContext struct{}

// sent is a [stats.Handler] that tells the trace of an attempt how far gRPC got with it:
// that it looked for a connection, and that it sent the header; and that the service
// answered. It sees every attempt of gRPC's own retries.
type sent struct{}

// TagRPC implements [stats.Handler].
func (sent) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements [stats.Handler].
func (sent) HandleRPC(ctx context.Context, s stats.RPCStats) {
	trace := httptrace.ContextClientTrace(ctx)
	a, own := ctx.Value(answerOfContext{}).(*answer)
	if trace == nil || !own {
		return
	}
	switch s.(type) {
	case *stats.InTrailer:
		a.complete.Store(true)
	case *stats.Begin:
		a.complete.Store(false)
		a.begun.Store(true)
		if trace.GetConn != nil {
			trace.GetConn("")
		}
	case *stats.OutHeader:
		if trace.WroteHeaders != nil {
			trace.WroteHeaders()
		}
	}
}

// TagConn implements [stats.Handler].
func (sent) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (sent) HandleConn(context.Context, stats.ConnStats) {}
