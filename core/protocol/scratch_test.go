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

// A body that may be offloaded grows in few steps, up to the records' limit.
func TestBodiesThatMayBeOffloadedGrowInFewSteps(t *testing.T) {
	t.Parallel()
	grow := func(cfg Config, size int) (steps, room int) {
		g, body := &Guard{cfg: cfg}, []byte(nil)
		piece := make([]byte, 1000)
		for len(body) < size {
			before := cap(body)
			if body = append(g.room(body, len(piece)), piece...); cap(body) != before {
				steps++
			}
		}
		return steps, cap(body)
	}
	const limit = 1 << 20
	plain, _ := grow(Config{Limits: Limits{ResponseBody: limit}}, limit-1000)
	offloading := Config{Limits: Limits{ResponseBody: limit}, Offload: Offloading{Blobs: struct{ BlobStore }{}}}
	offloads, room := grow(offloading, limit-1000)
	if offloads > 8 || plain < 2*offloads || room > limit+limit/4 {
		t.Errorf("grew in %d steps to %d bytes; a body that is not offloaded grew in %d", offloads, room, plain)
	}
	if body := (&Guard{cfg: offloading}).room(nil, copyBuffer/8); body != nil {
		t.Errorf("a small body has room for %d bytes", cap(body))
	}
	if body := (&Guard{cfg: offloading}).room(nil, 2*limit); cap(body) < 2*limit {
		t.Errorf("a large piece has room for %d bytes", cap(body))
	}
}
