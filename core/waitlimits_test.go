package reprise_test

import (
	"strconv"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

func TestWaitLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits reprise.WaitLimits
		same   int // of 4 that wait for one key
		scope  int // of 4 more, each for another key of the scope
		all    int // of 4 more, each of another scope
	}{
		{"per key", reprise.WaitLimits{PerKey: 2}, 2, 4, 4},
		{"per scope", reprise.WaitLimits{PerScope: 3}, 3, 0, 4},
		{"total", reprise.WaitLimits{Total: 5}, 4, 1, 0},
	} {
		inTimeNamed(t, c.name, func(t *testing.T) {
			b := setup(t, reprise.Config{Waiting: c.limits})
			var s answers
			begin := func(scope, key string) {
				op := order(key)
				op.Scope = scope
				if res := b.mustBegin(t, op); res.Attempt != nil {
					t.Cleanup(func() { _ = res.Attempt.Release() })
				}
				s.begin(t.Context(), b.Engine, wait(op, time.Second), 1)
			}
			refused := 0
			more := func(what string, want int) {
				t.Helper()
				list := s.of(reprise.InProgress)
				for _, got := range list[refused:] {
					if got.after != 0 {
						t.Errorf("refused after %v, want at once", got.after)
					}
				}
				if waiting := 4 - (len(list) - refused); waiting != want {
					t.Errorf("%d of 4 wait for %s, want %d", waiting, what, want)
				}
				refused = len(list)
			}
			for range 4 {
				begin("tenant", "k")
			}
			more("one key", c.same)
			for i := range 4 {
				begin("tenant", strconv.Itoa(i))
			}
			more("one scope", c.scope)
			for i := range 4 {
				begin("tenant"+strconv.Itoa(i), "k")
			}
			more("any", c.all)

			time.Sleep(time.Second) // they have all left
			refused = len(s.of(reprise.InProgress))
			if refused != 12 {
				t.Fatalf("%d answers, want 12", refused)
			}
			for range 4 {
				begin("tenant", "k")
			}
			more("one key", c.same)
			s.Wait()
		})
	}
}

// mustBegin begins op, with any outcome.
func (b *bench) mustBegin(t *testing.T, op reprise.Operation) reprise.Result {
	t.Helper()
	res := must(b.Begin(t.Context(), op))
	return res
}
