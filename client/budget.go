package repriseclient

import "sync"

// putBack is how many tokens a call puts back, and so the number of retries for each
// call in the long run.
const putBack = 0.2

// bucket is the state of a [Budget]. A nil bucket is never empty.
type bucket struct {
	burst float64

	mu     sync.Mutex
	tokens float64
}

func newBucket(b Budget) *bucket {
	if b.Off {
		return nil
	}
	return &bucket{burst: float64(b.Burst), tokens: float64(b.Burst)}
}

// deposit counts a call.
func (b *bucket) deposit() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.burst, b.tokens+putBack)
}

// withdraw reports whether there is a token for a retry, and takes it.
func (b *bucket) withdraw() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
