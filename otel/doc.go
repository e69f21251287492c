// Package repriseotel reports the work of an engine to OpenTelemetry: metrics, events on
// the spans of requests, and a link from a replay to the trace of the first run.
//
//	telemetry, err := repriseotel.New(repriseotel.Config{})
//	guard, err := protocol.New(telemetry.Store(store), protocol.Config{
//		Name: "payments", Keep: protocol.Keeping{Annotate: repriseotel.Annotate},
//		Engine: reprise.Config{Observer: telemetry, Detach: repriseotel.Detach},
//	})
//	stop, err := telemetry.Watch("payments", guard.Engine())
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
//	reprise.handler.duration     histogram  seconds that a handler had its attempt: reprise.label
//	reprise.complete.duration    histogram  seconds that recording or releasing took: reprise.label, reprise.end
//	reprise.store.duration       histogram  seconds of one call of the store: reprise.operation, error.type
//	reprise.running              gauge      attempts that have begun and not ended: reprise.engine
//	reprise.waiting              gauge      duplicates that wait: reprise.engine
//	reprise.background.tasks     gauge      completions and releases that are still to be made: reprise.engine
//	reprise.background.bytes     gauge      of their responses: reprise.engine
//	reprise.events.dropped       counter    events that an observer was too slow for: reprise.engine
//	reprise.stuck                gauge      records that wait for an operator: reprise.engine, reprise.label, reprise.state (lapsed, unknown)
//	reprise.store.used           gauge      use of a resource of the store, in this process: reprise.engine, reprise.resource (connections, slots, records, bytes)
//	reprise.store.limit          gauge      its limit, where it has one: the same
//	reprise.store.waiting        gauge      calls that wait for some of it: the same
//
// Each outcome, end and event of a policy is a series from the making of its guard on,
// with the value zero: about forty for each policy, fifteen of them of one counter. Set
// the MeterProvider up before. For labels of [reprise.Do], which has no guard, call
// [reprise.Engine.Declare]. The SDK of OpenTelemetry keeps 2,000 series of a counter
// unless it is told otherwise, and adds the others up without their attributes, where no
// alert sees them: for more than a hundred policies set metric.WithCardinalityLimit.
//
// reprise.stuck comes from the records themselves, so it also has those whose client does
// not come back. One process counts at a time, and the others report nothing: take the
// maximum over processes, as the alerts do. [reprise.Engine.Stuck] says how, and how
// often.
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
// It makes no spans of attempts and propagates no trace: put otelhttp below the
// transport, as its base, and its spans are children of "reprise.call".
//
// # Attributes
//
// Every attribute has few values, and none is of a client: the labels are the names of
// policies, and all others are enumerated in package reprise. The events of a span have
// the short ID of the operation, which finds its record.
//
// The folder has a dashboard for Grafana (dashboard.json) and rules for alerts of
// Prometheus (alerts.yaml); both use the names that Prometheus makes of these.
package repriseotel
