package protocol

import "testing"

// Large buffers go back to the collector.
func TestLargeBuffersAreNotKept(t *testing.T) {
	t.Parallel()
	for size, kept := range map[int]bool{0: true, 256 << 10: true, 256<<10 + 1: false} {
		if got := again(make([]byte, size)); (got != nil) != kept || len(got) != 0 {
			t.Errorf("of %d bytes, %d are kept", size, cap(got))
		}
	}
}
