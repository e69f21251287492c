package reprisegrpc

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/reprise-go/reprise/core/protocol"
)

// recording is one run of a handler. It is the [grpc.ServerTransportStream] of the
// handler, and holds its header and trailer back until the attempt is completed or
// released.
type recording struct {
	x      *protocol.Exchange
	method string

	mu              sync.Mutex
	header, trailer metadata.MD
	sent            bool // the handler called SendHeader
	finished        bool
}

var errHeaderSent = errors.New("reprisegrpc: metadata set after the header was sent or the call ended; set it before SendHeader and before the handler returns")

// run runs a handler in an exchange.
func run(ctx context.Context, req any, handler grpc.UnaryHandler, x *protocol.Exchange) (any, error) {
	defer x.Close()
	r := &recording{x: x}
	r.method, _ = grpc.Method(ctx)
	returned := false
	defer func() { //nolint:contextcheck // the exchange has its own
		if !returned { // the handler panicked, or ended its goroutine, or its result panics when it is read
			x.AbandonCall(false)
			r.end()
		}
	}()
	resp, err := handler(grpc.NewContextWithServerTransportStream(x.Context(), r), req) //nolint:contextcheck // the exchange has its own
	result, ok := resultOf(resp, err)
	returned = true
	header, trailer := r.end()
	var reply protocol.CallReply
	if ok {
		result.Header, result.Trailer = fields(header), fields(trailer)
		reply = x.FinishCall(result) //nolint:contextcheck // the exchange has its own
	} else {
		reply = x.AbandonCall(true) //nolint:contextcheck // the exchange has its own
	}
	if reply.Replace {
		return send(ctx, reply.Result)
	}
	if reply.Mark.Name != "" {
		add(header, reply.Mark)
	}
	_ = grpc.SetHeader(ctx, header) // fails only where the client has left, as the next does
	_ = grpc.SetTrailer(ctx, trailer)
	return resp, err
}

// Method implements [grpc.ServerTransportStream].
func (r *recording) Method() string { return r.method }

// SetHeader implements [grpc.ServerTransportStream].
func (r *recording) SetHeader(md metadata.MD) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(md) == 0 {
		return nil
	}
	return r.take(md)
}

// SendHeader implements [grpc.ServerTransportStream]. The header leaves with the
// response.
func (r *recording) SendHeader(md metadata.MD) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.take(md)
	r.sent = true
	return err
}

func (r *recording) take(md metadata.MD) error {
	if r.finished || r.sent {
		return errHeaderSent
	}
	r.header = r.join(r.header, md)
	return nil
}

// SetTrailer implements [grpc.ServerTransportStream].
func (r *recording) SetTrailer(md metadata.MD) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished && len(md) > 0 {
		return errHeaderSent
	}
	r.trailer = r.join(r.trailer, md)
	return nil
}

// end returns the header and the trailer, and refuses later metadata.
func (r *recording) end() (header, trailer metadata.MD) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = true
	return metadata.Join(r.header), metadata.Join(r.trailer)
}

// join adds metadata of a handler, without the control fields, which only the protocol
// sets (R11).
func (r *recording) join(to, md metadata.MD) metadata.MD {
	own := metadata.Join(md)
	maps.DeleteFunc(own, func(name string, _ []string) bool { _, keep := r.x.Tidy(name, ""); return !keep })
	return metadata.Join(to, own)
}

// add adds a field that the protocol sets.
func add(md metadata.MD, f protocol.Field) {
	if !f.Add {
		md.Delete(f.Name)
	}
	md.Append(strings.ToLower(f.Name), f.Value)
}
