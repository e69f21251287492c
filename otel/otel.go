package repriseotel

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	reprise "github.com/reprise-go/reprise/core"
)

// scopeName is the instrumentation scope of all metrics.
const scopeName = "github.com/reprise-go/reprise/otel"

// The attributes.
const (
	keyLabel     = attribute.Key("reprise.label")
	keyOutcome   = attribute.Key("reprise.outcome")
	keyEnd       = attribute.Key("reprise.end")
	keyEvent     = attribute.Key("reprise.event")
	keyEngine    = attribute.Key("reprise.engine")
	keyOperation = attribute.Key("reprise.operation")
	keyResource  = attribute.Key("reprise.resource")
	keyState     = attribute.Key("reprise.state")
	keyFinding   = attribute.Key("reprise.finding")
	keySeverity  = attribute.Key("reprise.severity")
	keyError     = attribute.Key("error.type")
)

// Config says where the telemetry goes. The zero value is valid.
type Config struct {
	// MeterProvider makes the metrics. The default is the global one.
	MeterProvider metric.MeterProvider
}

// Telemetry is a [reprise.Observer] that counts, measures and annotates. Make one with
// [New], for any number of engines. It is safe for concurrent use.
type Telemetry struct {
	meter metric.Meter

	requests, attempts, events            metric.Int64Counter
	claim, wait, handler, complete, store metric.Float64Histogram

	running, waiting, tasks, bytes metric.Int64ObservableGauge
	stuck, uncounted               metric.Int64ObservableGauge
	used, limit, queued            metric.Int64ObservableGauge // of the store's resources
	findings, unchecked            metric.Int64ObservableGauge // of its server
	dropped                        metric.Int64ObservableCounter

	sets   sync.Map // of setKey to metric.MeasurementOption
	labels sync.Map // the labels that were seen
}

var _ reprise.Observer = (*Telemetry)(nil)

// buckets are the boundaries of the histograms, in seconds: the store replies within a
// millisecond, and a handler may run for an hour (reprise.Config.MaxRun). A quantile
// beyond the last boundary would look like the boundary.
var buckets = metric.WithExplicitBucketBoundaries(
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 7200)

// New creates the instruments. The error is the meter's, if it refuses an instrument.
func New(c Config) (*Telemetry, error) {
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{meter: c.MeterProvider.Meter(scopeName)}
	var first error
	note := func(err error) {
		if err != nil && first == nil {
			first = fmt.Errorf("repriseotel: %w", err)
		}
	}
	counter := func(name, unit, what string) metric.Int64Counter {
		made, err := t.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		note(err)
		return made
	}
	histogram := func(name, what string) metric.Float64Histogram {
		made, err := t.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), buckets)
		note(err)
		return made
	}
	gauge := func(name, unit, what string) metric.Int64ObservableGauge {
		made, err := t.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		note(err)
		return made
	}
	t.requests = counter("reprise.requests", "{request}", "Requests with an idempotency key, by outcome.")
	t.attempts = counter("reprise.attempts", "{attempt}", "Attempts to run an operation, by how they ended.")
	t.events = counter("reprise.events", "{event}", "Events that end neither a request nor an attempt.")
	t.claim = histogram("reprise.claim.duration", "Time to claim a key, without waiting for another attempt.")
	t.wait = histogram("reprise.wait.duration", "Time that a duplicate waited for another attempt.")
	t.handler = histogram("reprise.handler.duration", "Time that a handler took for its attempt.")
	t.complete = histogram("reprise.complete.duration", "Time to record or release an attempt.")
	t.store = histogram("reprise.store.duration", "Time of one call to the store.")
	t.running = gauge("reprise.running", "{attempt}", "Attempts that have begun and not ended.")
	t.waiting = gauge("reprise.waiting", "{request}", "Duplicates that wait for another attempt.")
	t.tasks = gauge("reprise.background.tasks", "{task}", "Completions and releases that are not made yet.")
	t.bytes = gauge("reprise.background.bytes", "By", "Size of the responses that are not recorded yet.")
	t.stuck = gauge("reprise.stuck", "{record}", "Records of the store that wait for an operator; reported by the one process that counts them.")
	t.uncounted = gauge("reprise.stuck.uncounted", "", "1 where the stuck records could not be counted.")
	t.used = gauge("reprise.store.used", "", "How much the store uses of a resource in this process.")
	t.limit = gauge("reprise.store.limit", "", "How much of a resource the store may use; absent without a limit.")
	t.queued = gauge("reprise.store.waiting", "{call}", "Calls that wait for a resource.")
	t.findings = gauge("reprise.store.findings", "{finding}", "Findings of the last check of the store's server, by code and severity.")
	t.unchecked = gauge("reprise.store.unchecked", "", "1 where the last check of the store's server failed.")
	dropped, err := t.meter.Int64ObservableCounter("reprise.events.dropped", metric.WithUnit("{event}"),
		metric.WithDescription("Events that were dropped because an observer was too slow."))
	note(err)
	t.dropped = dropped
	if first != nil {
		return nil, first
	}
	return t, nil
}

// setKey identifies the attribute set of a measurement.
type setKey struct {
	label string
	key   attribute.Key // of value; empty: only the label
	value string
}

// about returns the attributes of a measurement, from a cache.
func (t *Telemetry) about(label string, key attribute.Key, value string) metric.MeasurementOption {
	k := setKey{label, key, value}
	if made, ok := t.sets.Load(k); ok {
		return made.(metric.MeasurementOption)
	}
	list := []attribute.KeyValue{keyLabel.String(label)}
	if key != "" {
		list = append(list, key.String(value))
	}
	made, _ := t.sets.LoadOrStore(k, metric.WithAttributeSet(attribute.NewSet(list...)))
	return made.(metric.MeasurementOption)
}

// start adds 0 to every counter of a label at its first event, which is
// [reprise.EventDeclared]. For Prometheus, a counter that first appears with the value 1
// has not increased, so an alert on its increase would miss the first time.
func (t *Telemetry) start(ctx context.Context, label string) {
	if _, seen := t.labels.LoadOrStore(label, true); seen {
		return
	}
	for _, outcome := range reprise.Outcomes() {
		t.requests.Add(ctx, 0, t.about(label, keyOutcome, outcome.String()))
	}
	for _, end := range reprise.AttemptEnds() {
		t.attempts.Add(ctx, 0, t.about(label, keyEnd, end.String()))
	}
	for _, name := range otherEvents {
		t.events.Add(ctx, 0, t.about(label, keyEvent, name))
	}
}

// takeover is the name of the one event that counts both as a request and as an event.
var takeover = reprise.Event{Outcome: reprise.Claimed, Attempt: 2}.Name()

// unknownLost is the event of an attempt whose handler declared its outcome unknown, and
// whose transaction was rolled back together with the record of that. A rollback without
// such a reason does no harm.
const unknownLost = "unknown-lost"

// otherEvents are the names of the engine's events that end neither a request nor an
// attempt. EventDeclared names those of a policy.
var otherEvents = []string{
	takeover, unknownLost, reprise.EndUnrecorded.String(), reprise.EndUnknown.String(), reprise.EventRenewed.Name, reprise.EventLeaseLost.Name,
	reprise.EventRunTooLong.Name, reprise.EventStoreError.Name, reprise.EventResolved.Name,
}

// Observe implements [reprise.Observer].
func (t *Telemetry) Observe(ctx context.Context, e reprise.Event) {
	t.start(ctx, e.Label)
	if e.Kind == reprise.EventDeclared {
		for _, kind := range e.Kinds {
			t.events.Add(ctx, 0, t.about(e.Label, keyEvent, kind.Name))
		}
		return
	}
	if e.Counted && e.Outcome != 0 {
		about := t.about(e.Label, keyOutcome, e.Outcome.String())
		t.requests.Add(ctx, 1, about)
		if e.ClaimTime > 0 {
			t.claim.Record(ctx, e.ClaimTime.Seconds(), about)
		}
		if e.WaitTime > 0 {
			t.wait.Record(ctx, e.WaitTime.Seconds(), t.about(e.Label, "", ""))
		}
	}
	if e.Counted && e.End != 0 {
		about := t.about(e.Label, keyEnd, e.End.String())
		t.attempts.Add(ctx, 1, about)
		t.handler.Record(ctx, e.RunTime.Seconds(), t.about(e.Label, "", ""))
		t.complete.Record(ctx, e.CompleteTime.Seconds(), about)
	}
	if name := e.Name(); !e.Counted || name == takeover {
		t.events.Add(ctx, 1, t.about(e.Label, keyEvent, name))
	}
	if e.End == reprise.EndNotApplied && e.Reason != "" {
		t.events.Add(ctx, 1, t.about(e.Label, keyEvent, unknownLost))
	}
	annotateSpan(ctx, &e)
}

// Watch reports the gauges of an engine under a name, until stop is called. The error is
// the meter's. The first collection starts the count of stuck records, even if the engine
// has no requests; one process at a time counts and reports them, see
// [reprise.Engine.Stuck].
func (t *Telemetry) Watch(name string, engine *reprise.Engine) (stop func() error, err error) {
	about := metric.WithAttributeSet(attribute.NewSet(keyEngine.String(name)))
	registered, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		stats := engine.Stats()
		o.ObserveInt64(t.running, int64(stats.Running), about)
		o.ObserveInt64(t.waiting, int64(stats.Waiting), about)
		o.ObserveInt64(t.tasks, int64(stats.Background), about)
		o.ObserveInt64(t.bytes, stats.BackgroundBytes, about)
		o.ObserveInt64(t.dropped, int64(stats.EventsDropped), about) //nolint:gosec // no engine lives that long
		for _, u := range stats.Store {
			of := metric.WithAttributes(keyEngine.String(name), keyResource.String(u.Name))
			o.ObserveInt64(t.used, u.Used, of)
			o.ObserveInt64(t.queued, u.Waiting, of)
			if u.Limit > 0 {
				o.ObserveInt64(t.limit, u.Limit, of)
			}
		}
		uncounted := int64(0)
		if stats.Uncounted {
			uncounted = 1
		}
		o.ObserveInt64(t.uncounted, uncounted, about)
		counts, _ := engine.Stuck()
		for _, c := range counts {
			o.ObserveInt64(t.stuck, int64(c.Count), metric.WithAttributes(keyEngine.String(name), keyLabel.String(c.Label), keyState.String(c.State.String())))
		}
		return nil
	}, t.running, t.waiting, t.tasks, t.bytes, t.dropped, t.stuck, t.uncounted, t.used, t.limit, t.queued)
	if err != nil {
		return nil, fmt.Errorf("repriseotel: %w", err)
	}
	return registered.Unregister, nil
}
