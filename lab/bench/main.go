// Bench measures Reprise over HTTP, beside the cost of the same servers without it. This
// program is the load; the server under test and its database are separate processes. The
// variants of a comparison run in shuffled rounds of one run, and its result is the
// median of the ratios in each round.
//
//	go run ./lab/bench                           # every suite, 40 minutes on two cores
//	go run ./lab/bench -suites redis -rounds 12
//	go run ./lab/bench -suites keys -keys 1000000
//	go run ./lab/bench -docs docs/engineering    # writes the page of figures, too
//
// docs/engineering/benchmarks.md describes the measurements of each suite, and their
// limits. The program tools/peers measures other libraries in the same way.
//
//run:not run: it measures for minutes
package main

import "github.com/reprise-go/reprise/lab/bench/suites"

func main() { suites.Main("go run ./lab/bench %s") }
