// Package load is the load generator of the benchmarks: keep-alive connections that send
// the next request when the response to the last one came. Its latencies leave out the
// requests that a slow server kept it from sending.
package load

import "time"

// Kind is the kind of requests in a load.
type Kind string

// The kinds of load.
const (
	New    Kind = "new"    // a new key for each request
	Replay Kind = "replay" // the key that the connection completed before the measurement
	NoKey  Kind = "no-key" // no key
)

// KindHeader names the kind to floors, which make no decision. Every request has it.
const KindHeader = "Bench-Kind"

// Order is one measurement.
type Order struct {
	Addr        string        // of the server
	Method      string        // of the requests; empty: POST
	Target      string        // likewise; empty: /t/orders
	Connections int           // that send at once
	Kind        Kind          // of the requests
	Warmup      time.Duration // before the measurement, of the same load
	Duration    time.Duration // of the measurement, if Count is 0
	Count       int           // requests of the measurement in all; 0: as many as fit into Duration
	Program     string        // of the test server's handler; empty: a benchmark's response
	Marked      bool          // replays must be marked, and other responses must not
}

// Result is the result of a measurement.
type Result struct {
	Requests int
	Elapsed  time.Duration
	P50, P99 time.Duration
}

// PerSecond returns the requests per second.
func (r Result) PerSecond() float64 { return float64(r.Requests) / r.Elapsed.Seconds() }
