package reprisegrpcclient

import (
	"context"
	"net/http/httptrace"

	"google.golang.org/grpc/stats"
)

// sent is a [stats.Handler] that tells the trace of an attempt how far gRPC got with it:
// that it looked for a connection, and that it sent the header. It sees every attempt of
// gRPC's own retries.
type sent struct{}

// TagRPC implements [stats.Handler].
func (sent) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements [stats.Handler].
func (sent) HandleRPC(ctx context.Context, s stats.RPCStats) {
	trace := httptrace.ContextClientTrace(ctx)
	if trace == nil {
		return
	}
	switch s.(type) {
	case *stats.Begin:
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
