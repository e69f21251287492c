package repriseotel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// traceparent is the name of the field that W3C Trace Context gives a trace and a span.
const traceparent = "traceparent"

// Annotate returns the traceparent of the span in ctx, or an empty string if there is
// none. Set it as [github.com/reprise-go/reprise/core/protocol.Keeping].Annotate, so that
// it is recorded with the response and replays are linked to the trace of the first run.
func Annotate(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// Detach is a [reprise.Config].Detach that keeps the span of a request for work that
// continues after it. If the span has ended by then, its late events are lost, but the
// metrics are kept.
func Detach(ctx context.Context) context.Context {
	return trace.ContextWithSpan(context.Background(), trace.SpanFromContext(ctx))
}

// annotateSpan adds an event to the span of the request, and links a replay to the first
// run.
func annotateSpan(ctx context.Context, e *reprise.Event) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attributes := make([]attribute.KeyValue, 0, 8)
	if e.Label != "" {
		attributes = append(attributes, keyLabel.String(e.Label))
	}
	if e.ID != (store.ID{}) {
		attributes = append(attributes, attribute.String("reprise.id", e.ID.Short()))
	}
	if e.Attempt > 0 {
		attributes = append(attributes, attribute.Int("reprise.attempt", e.Attempt))
	}
	if e.Counted && e.Outcome != 0 {
		attributes = append(attributes, keyOutcome.String(e.Outcome.String()))
	}
	if e.Counted && e.End != 0 {
		attributes = append(attributes, keyEnd.String(e.End.String()))
	}
	if e.Err != nil {
		attributes = append(attributes, attribute.String("exception.message", e.Err.Error()))
	}
	span.AddEvent("reprise."+e.Name(), trace.WithAttributes(attributes...))
	if first := spanOf(e.Annotation); first.IsValid() { //nolint:contextcheck // the span that is read has nothing of this request
		span.AddLink(trace.Link{SpanContext: first, Attributes: []attribute.KeyValue{attribute.String("reprise.link", "first-run")}})
	}
}

// spanOf returns the span that an annotation names, an invalid one if it names none.
func spanOf(annotation string) trace.SpanContext {
	if annotation == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: annotation})
	return trace.SpanContextFromContext(ctx)
}
