package judge

import (
	"cmp"
	"math"
	"slices"
	"time"
)

var timingCases = []Case{
	{
		ID: "timing/principals", Sentence: "The time of an answer does not tell a principal that another one used the same key.",
		Source: "draft 5; R43", Levels: Levels{May, Must, Should, Should}, needs: principals,
		run: func(e *env) {
			const pairs = 40
			var used, unused []time.Duration
			for i := range pairs {
				mine, fresh := e.post(), e.byOther(e.post())
				e.first(mine)
				theirs := e.byOther(mine)
				if i%2 == 0 {
					used, unused = append(used, e.first(theirs).Took), append(unused, e.first(fresh).Took)
				} else {
					unused, used = append(unused, e.first(fresh).Took), append(used, e.first(theirs).Took)
				}
			}
			if z, by := apart(used, unused); math.Abs(z) > 6 && by.Abs() > 200*time.Microsecond {
				e.fail("a key that another principal used changes the time by %v in the median of %d pairs (z = %.1f)", by, pairs, z)
			}
		},
	},
}

// apart returns how surely the values of a and b differ, as the standard score of their
// rank sum, and the difference of their medians. Requests of both kinds take turns, so a
// busy machine slows both down; by chance the score exceeds 6 once in 10⁹ runs.
func apart(a, b []time.Duration) (z float64, by time.Duration) {
	type sample struct {
		took time.Duration
		of   bool // a
	}
	var all []sample
	for _, d := range a {
		all = append(all, sample{d, true})
	}
	for _, d := range b {
		all = append(all, sample{d, false})
	}
	slices.SortFunc(all, func(x, y sample) int { return cmp.Compare(x.took, y.took) })
	rank := 0.0
	for i, s := range all {
		if s.of {
			rank += float64(i + 1)
		}
	}
	n, m := float64(len(a)), float64(len(b))
	z = (rank - n*(n+m+1)/2) / math.Sqrt(n*m*(n+m+1)/12)
	median := func(list []time.Duration) time.Duration {
		list = slices.Sorted(slices.Values(list))
		return list[len(list)/2]
	}
	return z, median(a) - median(b)
}
