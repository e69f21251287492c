// Bench measures Reprise over HTTP, beside what the same servers cost without it. The
// server under test, its database and the load generator are processes of their own.
// Variants that are compared run in shuffled rounds of one run, and what counts is the
// median of the ratios in each round.
//
//	go run ./lab/bench                        every suite, about 20 minutes on two cores
//	go run ./lab/bench -suites redis -rounds 12
//	go run ./lab/bench -full                  with 10⁶ keys, and an hour at a fixed rate
//	go run ./lab/bench -out docs/engineering/benchmarks.json && go run ./lab/bench pages
//
// docs/engineering/benchmarks.md says what each suite measures, and what misleads about
// it. The program tools/peers measures other libraries in the same way.
package main

import "github.com/reprise-go/reprise/lab/bench/suites"

func main() { suites.Main("go run ./lab/bench %s") }
