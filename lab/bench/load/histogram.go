package load

import (
	"math/bits"
	"time"
)

// Histogram counts latencies in buckets that are at most a 64th of their value wide, from
// a nanosecond to hours. The zero value is empty. It is not safe for concurrent use.
type Histogram struct {
	counts [buckets]int64
	total  int64
}

// A bucket is named by the position of the value's highest bit and the bits behind it.
const (
	subBits = 6
	buckets = (64 - subBits) << subBits
)

// Record counts a latency. A negative one counts as zero.
func (h *Histogram) Record(d time.Duration) {
	h.counts[bucketOf(uint64(max(d, 0)))]++
	h.total++
}

// Add adds the counts of another histogram.
func (h *Histogram) Add(other *Histogram) {
	for i, n := range &other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// Quantile returns the latency that a share of all stayed within, rounded up to the end
// of its bucket, and zero of an empty histogram.
func (h *Histogram) Quantile(share float64) time.Duration {
	want := max(int64(share*float64(h.total)+0.5), 1)
	var seen int64
	for i, n := range &h.counts {
		if seen += n; seen >= want {
			return endOf(i)
		}
	}
	return 0
}

func bucketOf(v uint64) int {
	exponent := max(bits.Len64(v)-1-subBits, 0)
	return exponent<<subBits + int(v>>exponent) //nolint:gosec // at most 2 to the 7th
}

// endOf returns the largest value of a bucket.
func endOf(bucket int) time.Duration {
	exponent := max(bucket>>subBits-1, 0)
	first := uint64(bucket-exponent<<subBits) << exponent //nolint:gosec // as bucketOf made it
	return time.Duration(first + 1<<exponent - 1)         //nolint:gosec // likewise
}
