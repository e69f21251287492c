// Package load is the load generator of the benchmarks: keep-alive connections that send
// one request after the other, in a separate process, so that their cost is not counted
// as the server's.
//
// A closed load ([Order.Rate] 0) sends the next request when the response to the last one
// came: it finds the throughput, and its latencies leave out the requests that a slow
// server kept it from sending. A load at a fixed rate measures every latency from the
// instant at which the request was due, so that a stall counts for everyone who would
// have waited in it.
package load

import (
	"time"
)

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
	Connections int           // that send at once
	Kind        Kind          // of the requests
	Warmup      time.Duration // before the measurement, of the same load
	Duration    time.Duration // of the measurement, if Count is 0
	Count       int           // requests of the measurement in all; 0: as many as fit into Duration
	Rate        float64       // requests a second of all connections; 0: as fast as responses come
	Program     string        // of the test server's handler; empty: a benchmark's response
	Marked      bool          // replays must be marked, and other responses must not
	CountWrong  bool          // count wrong responses instead of stopping
}

// Result is the result of a measurement.
type Result struct {
	Requests                 int64
	Elapsed                  time.Duration
	P50, P90, P99, P999, Max time.Duration
	Wrong                    map[string]int64 // responses of an order that counts them: by the status, and the problem's code
	Failure                  string           // the first response that was wrong; empty: all were right
}

// PerSecond returns the requests per second.
func (r Result) PerSecond() float64 { return float64(r.Requests) / r.Elapsed.Seconds() }
