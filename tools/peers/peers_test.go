package peers

import (
	"testing"

	"github.com/reprise-go/reprise/lab/servers"
)

func TestMain(m *testing.M) { servers.Main{M: m}.Run() }

// BenchmarkMemory compares what keeps its records in the memory of the process.
func BenchmarkMemory(b *testing.B) {
	v2, v3 := build(b, "fiberv2"), build(b, "../fiberv3")
	compare(b, []*server{
		start(b, bare, v2),
		start(b, least, v2, "-variant", "floor-memory"),
		start(b, own, v2, "-variant", "own-memory"),
		start(b, ours, v2, "-variant", "reprise-memory"),
		start(b, bareV3, v3),
		start(b, ownV3, v3, "-variant", "own-memory"),
	})
}

// BenchmarkRedis compares what keeps its records in Redis.
func BenchmarkRedis(b *testing.B) {
	v2, redis := build(b, "fiberv2"), servers.Redis.Shared(b).Addr()
	compare(b, []*server{
		start(b, bare, v2),
		start(b, own, v2, "-variant", "own-redis", "-redis", redis),
		start(b, ours, v2, "-variant", "reprise-redis", "-redis", redis),
		start(b, alone, v2, "-variant", "alone-redis", "-redis", redis),
	})
}

// compare reports the medians of the servers, as metrics of a benchmark for each.
func compare(b *testing.B, servers []*server) {
	for _, kind := range []Kind{New, Replay} {
		medians := measure(b, kind, servers)
		for _, s := range servers {
			b.Run(string(kind)+"/"+s.name, func(b *testing.B) {
				got := medians[s.name] // measured already, in rounds
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(got.rate, "req/s")
				b.ReportMetric(got.rate/medians[own].rate, "×own")
				b.ReportMetric(got.rate/medians[bare].rate, "×bare")
				b.ReportMetric(got.cpu, "cpu-µs/req")
				b.ReportMetric(got.allocs, "allocs/op")
				b.ReportMetric(got.bytes, "B/op")
			})
		}
	}
}
