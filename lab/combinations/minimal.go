package combinations

import (
	"slices"
	"strings"
	"testing"
)

// minimal returns a smaller draw that still has a finding of the kind: without the steps,
// fields and layers that can be taken out.
func (c *draw) minimal(t *testing.T, protect Adapter, kind string) *draw {
	t.Helper()
	for smaller := true; smaller; {
		smaller = false
		for _, list := range c.lists() {
			for i := list.len - 1; i >= 0; i-- {
				if less := list.without(i); less.finds(t, protect, kind) {
					c, smaller = less, true
					break
				}
			}
			if smaller {
				break
			}
		}
	}
	return c
}

// finds reports whether the draw has a finding of the kind, each of a few times.
func (c *draw) finds(t *testing.T, protect Adapter, kind string) bool {
	t.Helper()
	for range 3 {
		if !slices.ContainsFunc(c.run(t, protect).findings, func(f string) bool { return strings.HasPrefix(f, kind+":") }) {
			return false
		}
	}
	return true
}

// elements is a list in a draw, and the draw without one of its elements.
type elements struct {
	len     int
	without func(i int) *draw
}

func (c *draw) lists() []elements {
	lists := []elements{
		{len(c.steps), func(i int) *draw {
			less := *c
			less.steps = slices.Delete(slices.Clone(c.steps), i, i+1)
			return &less
		}},
		{len(c.store), func(i int) *draw {
			less := *c
			less.store = slices.Delete(slices.Clone(c.store), i, i+1)
			return &less
		}},
	}
	for s := range c.services {
		lists = append(lists, elements{len(c.services[s]), func(i int) *draw {
			less := *c
			less.services = slices.Clone(c.services)
			less.services[s] = slices.Delete(slices.Clone(c.services[s]), i, i+1)
			return &less
		}})
	}
	return lists
}
