// Package repriseotel reports the work of an engine to OpenTelemetry: metrics, events on
// the spans of requests, and a link from a replay to the trace of the first run.
//
//	telemetry, err := repriseotel.New(repriseotel.Config{})
//	guard, err := protocol.New(telemetry.Store(store), protocol.Config{
//		Label: "payments", Keep: protocol.Keeping{Annotate: repriseotel.Annotate},
//		Engine: reprise.Config{Observer: telemetry, Detach: repriseotel.Detach},
//	})
//	stop, err := telemetry.Watch("payments", guard.Engine())
//	stopStore, err := telemetry.WatchStore("payments", store)
//
// It makes no spans: put otelhttp, otelgin or otelecho outside the middleware of Reprise,
// and the instrumentation of the database client below the store. An engine has one
// observer; [reprise.Observers] joins several.
//
// # Metrics
//
//	reprise.requests             counter    outcomes of the requests with a key: reprise.label, reprise.outcome
//	reprise.attempts             counter    how attempts ended: reprise.label, reprise.end
//	reprise.events               counter    other transitions: reprise.label, reprise.event
//	reprise.claim.duration       histogram  seconds from the request to the response of the store, without waiting: reprise.label, reprise.outcome
//	reprise.wait.duration        histogram  seconds that a duplicate waited for the first request: reprise.label
//	reprise.handler.duration     histogram  seconds that a handler took for its attempt: reprise.label
//	reprise.complete.duration    histogram  seconds that recording or releasing took: reprise.label, reprise.end
//	reprise.store.duration       histogram  seconds of one call to the store: reprise.operation, error.type
//	reprise.running              gauge      attempts that have begun and not ended: reprise.engine
//	reprise.waiting              gauge      duplicates that wait: reprise.engine
//	reprise.background.tasks     gauge      completions and releases that are not made yet: reprise.engine
//	reprise.background.bytes     gauge      size of the responses that are not recorded yet: reprise.engine
//	reprise.events.dropped       counter    events that were dropped because an observer was too slow: reprise.engine
//	reprise.stuck                gauge      records that wait for an operator: reprise.engine, reprise.label, reprise.state (lapsed, unknown)
//	reprise.stuck.uncounted      gauge      1 where this process could not count them, and no other one has since: reprise.engine
//	reprise.store.used           gauge      use of a resource of the store, in this process: reprise.engine, reprise.resource (connections, slots, records, bytes)
//	reprise.store.limit          gauge      limit of that resource, if it has one: the same
//	reprise.store.waiting        gauge      calls that wait for that resource: the same
//	reprise.store.findings       gauge      findings of the last check of the store's server: reprise.engine, reprise.finding, reprise.severity (warning, unsafe)
//	reprise.store.unchecked      gauge      1 where that check failed: reprise.engine
//
// As soon as a guard exists, each outcome, end and event of its policy is a series with
// the value zero: about forty for each policy, fifteen of them in one counter. Set up the
// MeterProvider before the guard. For the labels of job.Do, which has no guard,
// call [reprise.Engine.Declare]. By default the OpenTelemetry SDK keeps 2,000 series of a
// counter and adds all others up without their attributes, where no alert sees them: for
// more than a hundred policies, set metric.WithCardinalityLimit.
//
// reprise.stuck comes from the records themselves, so it includes those whose clients do
// not come back. One process at a time counts them, and the others report nothing: take
// the maximum over processes, as the alerts do. [reprise.Engine.Stuck] says how they are
// counted, and how often.
//
// # The client's end
//
// [NewClient] makes an observer for [repriseclient.Config]: a span "reprise.call" for
// each call, with an event for each attempt, and these metrics:
//
//	reprise.client.calls         counter    calls: reprise.label, reprise.outcome (answered, replayed, gave-up, unknown, not-sent, omitted, unprotected, unrecorded)
//	reprise.client.attempts      counter    attempts: reprise.label, reprise.result (2xx … 5xx, a problem's code, error, timeout, canceled), reprise.retry, error.type
//	reprise.client.call.duration histogram  seconds of a call with all attempts: reprise.label, reprise.outcome, error.type
//
// It makes no spans for attempts and does not propagate the trace: use otelhttp as the
// base of the transport, and its spans become children of "reprise.call".
//
// # Attributes
//
// Every attribute of a metric has few values, and none comes from a client: labels are
// the names of policies, and package reprise enumerates all others. The events of a span
// have the short ID of the operation, with which an operator finds its record.
//
// The folder has a Grafana dashboard (dashboard.json) and Prometheus alert rules
// (alerts.yaml); both use the names that Prometheus derives from these.
package repriseotel
