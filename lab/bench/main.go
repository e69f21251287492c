// Bench measures Reprise over HTTP, beside the cost of the same servers without it. The
// server under test, its database and the load generator are separate processes. The
// variants of a comparison run in shuffled rounds of one run, and its result is the
// median of the ratios in each round.
//
//	go run ./lab/bench                           # every suite, 40 minutes on two cores
//	go run ./lab/bench -suites redis -rounds 12
//	go run ./lab/bench -full                     # with 10⁶ keys, and an hour at a fixed rate
//	go run ./lab/bench -docs docs/engineering    # writes the page of figures, too
//
// docs/engineering/benchmarks.md describes the measurements of each suite, and their
// limits. The program tools/peers measures other libraries in the same way.
//
//run:not run: it measures for minutes
package main

import "github.com/reprise-go/reprise/lab/bench/suites"

func main() { suites.Main("go run ./lab/bench %s") }
