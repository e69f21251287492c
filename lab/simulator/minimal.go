package simulator

import (
	"slices"
	"strings"
	"testing"
)

// minimal returns a smaller draw that still has a finding of the kind: without the steps
// and options that can be taken out.
func (c *draw) minimal(t *testing.T, kind string) *draw {
	t.Helper()
	for smaller := true; smaller; {
		smaller = false
		for less := range c.smaller {
			if smaller = less.finds(t, kind); smaller {
				c = less
				break
			}
		}
	}
	return c
}

// smaller yields the draw without each of its steps and options.
func (c *draw) smaller(yield func(*draw) bool) {
	for i := range slices.Backward(c.steps) {
		less := *c
		less.steps = without(c.steps, i)
		if !yield(&less) {
			return
		}
	}
	for s := range c.services {
		for i := range slices.Backward(c.services[s]) {
			less := *c
			less.services = slices.Clone(c.services)
			less.services[s] = without(c.services[s], i)
			if !yield(&less) {
				return
			}
		}
	}
}

func without[S ~[]E, E any](list S, i int) S { return slices.Delete(slices.Clone(list), i, i+1) }

// finds reports whether the draw has a finding of the kind, each of a few times.
func (c *draw) finds(t *testing.T, kind string) bool {
	t.Helper()
	for range 3 {
		if !slices.ContainsFunc(c.run(t, nil).findings, func(f string) bool { return strings.HasPrefix(f, kind+":") }) {
			return false
		}
	}
	return true
}
