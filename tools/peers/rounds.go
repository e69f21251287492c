package peers

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// How much is measured: rounds that count, and requests of each connection in one. Many
// short rounds keep what else the machine does from falling on one server.
const (
	connections = 64
	rounds      = 40
	perRound    = 100
)

// sample is what a server did in one round.
type sample struct {
	rate   float64 // requests per second
	cpu    float64 // microseconds of the server's process for a request
	allocs float64 // of the server's process for a request
	bytes  float64 // likewise
}

// measure loads the servers in turn, in another order each round, and returns the medians
// of their samples. The first round warms them up and does not count.
func measure(tb testing.TB, kind Kind, servers []*server) map[string]sample {
	tb.Helper()
	samples := make(map[string][]sample)
	for round := range rounds + 1 {
		for _, i := range rand.Perm(len(servers)) { //nolint:gosec // an order, no secret
			s := servers[i]
			got := s.measure(tb, kind)
			if round > 0 {
				samples[s.name] = append(samples[s.name], got)
			}
		}
	}
	medians := make(map[string]sample)
	for name, list := range samples {
		medians[name] = sample{
			rate:   median(list, func(s sample) float64 { return s.rate }),
			cpu:    median(list, func(s sample) float64 { return s.cpu }),
			allocs: median(list, func(s sample) float64 { return s.allocs }),
			bytes:  median(list, func(s sample) float64 { return s.bytes }),
		}
	}
	return medians
}

// measure loads one server, and checks that its handler ran exactly as often as it has
// to.
func (s *server) measure(tb testing.TB, kind Kind) sample {
	tb.Helper()
	if kind == Replay {
		if err := s.load.send(kind, 1); err != nil { // the first request with a key runs
			tb.Fatalf("%s: %v", s.name, err)
		}
	}
	before, began := s.usage(tb), time.Now()
	if err := s.load.send(kind, perRound); err != nil {
		tb.Fatalf("%s: %v", s.name, err)
	}
	took := time.Since(began)
	used := s.usage(tb).Sub(before)

	total := float64(perRound * len(s.load.conns))
	if runs := int64(total); used.Runs != runs && (kind == New || s.isBare()) || used.Runs != 0 && kind == Replay && !s.isBare() {
		tb.Fatalf("%s: the handler ran %d times for %v requests of kind %s", s.name, used.Runs, total, kind)
	}
	return sample{
		rate: total / took.Seconds(), cpu: float64(used.CPU.Microseconds()) / total,
		allocs: float64(used.Mallocs) / total, bytes: float64(used.Bytes) / total,
	}
}

func median(list []sample, of func(sample) float64) float64 {
	values := make([]float64, len(list))
	for i, s := range list {
		values[i] = of(s)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
