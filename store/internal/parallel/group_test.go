package parallel

import (
	"sync/atomic"
	"testing"
)

func TestWaitPanicsAfterTheLastPart(t *testing.T) {
	t.Parallel()
	var (
		group Group
		ended atomic.Int64
	)
	for n := range 10 {
		group.Go(func() {
			defer ended.Add(1)
			if n%3 == 0 {
				panic("of a part")
			}
		})
	}
	defer func() {
		if p := recover(); p != "of a part" || ended.Load() != 10 {
			t.Errorf("panic %v after %d parts of 10", p, ended.Load())
		}
	}()
	group.Wait()
}
