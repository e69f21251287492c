package repriseotel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	repriseclient "github.com/reprise-go/reprise/client"
)

// ClientConfig says where the telemetry of a [Client] goes. The zero value is valid.
type ClientConfig struct {
	// Label is the name of the service that is called, the attribute reprise.label. The
	// default is empty.
	Label string

	// MeterProvider makes the metrics. The default is the global one.
	MeterProvider metric.MeterProvider

	// TracerProvider makes the spans. The default is the global one.
	TracerProvider trace.TracerProvider
}

// Client is a [repriseclient.Observer] that makes a span for each call and counts calls
// and attempts. Make one with [NewClient]. It is safe for concurrent use.
type Client struct {
	name   string
	tracer trace.Tracer

	calls, attempts metric.Int64Counter
	duration        metric.Float64Histogram

	sets sync.Map // of clientSet to metric.MeasurementOption
}

var _ repriseclient.Observer = (*Client)(nil)

// NewClient creates the instruments. The error is the meter's, if it refuses an
// instrument.
func NewClient(c ClientConfig) (*Client, error) {
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
	o := &Client{name: c.Label, tracer: c.TracerProvider.Tracer(scopeName)}
	meter := c.MeterProvider.Meter(scopeName)
	var errs [3]error
	o.calls, errs[0] = meter.Int64Counter("reprise.client.calls", metric.WithUnit("{call}"),
		metric.WithDescription("Calls with an idempotency key, by how they ended."))
	o.attempts, errs[1] = meter.Int64Counter("reprise.client.attempts", metric.WithUnit("{attempt}"),
		metric.WithDescription("Attempts of calls, by result."))
	o.duration, errs[2] = meter.Float64Histogram("reprise.client.call.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of a call with all of its attempts."), buckets)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("repriseotel: %w", err)
	}
	for _, outcome := range repriseclient.Outcomes() {
		o.calls.Add(context.Background(), 0, o.about(clientSet{outcome: outcome})) // see Telemetry.start
	}
	return o, nil
}

// clientSet is the attribute set of a measurement.
type clientSet struct {
	outcome repriseclient.Outcome // of a call; 0: an attempt
	result  string
	retry   bool
	err     string // error.type; empty: none
}

// about returns the attributes of a measurement, from a cache.
func (o *Client) about(k clientSet) metric.MeasurementOption {
	if made, ok := o.sets.Load(k); ok {
		return made.(metric.MeasurementOption)
	}
	list := []attribute.KeyValue{keyLabel.String(o.name)}
	if k.outcome != 0 {
		list = append(list, keyOutcome.String(k.outcome.String()))
	} else {
		list = append(list, keyResult.String(k.result), keyRetry.Bool(k.retry))
	}
	if k.err != "" {
		list = append(list, keyError.String(k.err))
	}
	made, _ := o.sets.LoadOrStore(k, metric.WithAttributeSet(attribute.NewSet(list...)))
	return made.(metric.MeasurementOption)
}

// The attributes of clients.
const (
	keyResult = attribute.Key("reprise.result")
	keyRetry  = attribute.Key("reprise.retry")
	keyStatus = attribute.Key("http.response.status_code")
)

// StartCall implements [repriseclient.Observer].
func (o *Client) StartCall(ctx context.Context, e repriseclient.CallStart) context.Context {
	attributes := []attribute.KeyValue{
		keyLabel.String(o.name), attribute.String("http.request.method", e.Method), attribute.String("reprise.key.hash", e.KeyHash),
	}
	ctx, _ = o.tracer.Start(ctx, "reprise.call", trace.WithAttributes(append(attributes, serverOf(e.Host)...)...)) //nolint:spancheck // EndCall ends it
	return ctx
}

// serverOf returns the attributes of a host, which may have a port.
func serverOf(host string) []attribute.KeyValue {
	name, port, err := net.SplitHostPort(host)
	number, _ := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return []attribute.KeyValue{attribute.String("server.address", strings.Trim(host, "[]"))}
	}
	return []attribute.KeyValue{attribute.String("server.address", name), attribute.Int("server.port", int(number))}
}

// EndAttempt implements [repriseclient.Observer].
func (o *Client) EndAttempt(ctx context.Context, e repriseclient.AttemptEnd) {
	o.attempts.Add(ctx, 1, o.about(clientSet{result: resultOf(e), retry: e.Retry, err: failureOf(e.Status, e.Err)}))
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.Int("reprise.attempt", e.Number), keyResult.String(resultOf(e)), keyRetry.Bool(e.Retry),
		attribute.Float64("reprise.attempt.seconds", e.Duration.Seconds()),
	}
	if e.Retry {
		attributes = append(attributes, attribute.Float64("reprise.wait.seconds", e.Wait.Seconds()))
	}
	if e.Status != 0 {
		attributes = append(attributes, keyStatus.Int(e.Status))
	}
	if e.Err != nil {
		attributes = append(attributes, attribute.String("exception.message", e.Err.Error()))
	}
	span.AddEvent("reprise.attempt", trace.WithAttributes(attributes...))
}

// resultOf names the result of an attempt: the code of a problem, the class of a status,
// or the kind of error.
func resultOf(e repriseclient.AttemptEnd) string {
	switch {
	case e.Code != "":
		return string(e.Code)
	case e.Err == nil && e.Status >= 100 && e.Status < 600:
		return string(rune('0'+e.Status/100)) + "xx"
	}
	return errorOf(e.Err)
}

// errorOf names the kind of an error.
func errorOf(err error) string {
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, repriseclient.ErrAttemptTimeout), errors.As(err, &late) && late.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "error"
}

// failureOf returns the error.type of an attempt or a call: the kind of its error, or the
// status of a response that is one. It is empty for a success.
func failureOf(status int, err error) string {
	switch {
	case err != nil:
		return errorOf(err)
	case status < 400:
		return ""
	case status < 600:
		return strconv.Itoa(status)
	}
	return "error"
}

// EndCall implements [repriseclient.Observer].
func (o *Client) EndCall(ctx context.Context, e repriseclient.CallEnd) {
	failure := failureOf(e.Status, e.Err)
	o.calls.Add(ctx, 1, o.about(clientSet{outcome: e.Outcome})) // without error.type: its series begin at zero
	o.duration.Record(ctx, e.Duration.Seconds(), o.about(clientSet{outcome: e.Outcome, err: failure}))
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(keyOutcome.String(e.Outcome.String()), attribute.Int("reprise.attempts", e.Attempts))
	if e.Status != 0 {
		span.SetAttributes(keyStatus.Int(e.Status))
	}
	if e.Code != "" {
		span.SetAttributes(keyResult.String(string(e.Code)))
	}
	if failure != "" {
		span.SetAttributes(keyError.String(failure))
	}
	switch {
	case e.Err != nil:
		span.RecordError(e.Err)
		span.SetStatus(codes.Error, e.Outcome.String())
	case e.Outcome == repriseclient.GaveUpRetrying:
		span.SetStatus(codes.Error, e.Outcome.String())
	}
	span.End()
}
