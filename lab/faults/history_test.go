package faults_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// history lists the events of an operation, one per line, in milliseconds since the
// first.
func (o *operation) history(promoted []int64) string {
	type line struct {
		at   int64
		text string
	}
	var lines []line
	add := func(at int64, format string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(format, args...)})
	}
	for i := range o.calls {
		c := &o.calls[i]
		kind := "call"
		switch {
		case c.other:
			kind = "call with another body"
		case c.audit:
			kind = "call when all was over"
		}
		add(c.began, "%s %d begins", kind, i+1)
		add(c.ended, "%s %d ends: %d %s, fence %d, body %x, replayed %t, unrecorded %t, error %v",
			kind, i+1, c.status, c.code, c.fence, c.sum[:4], c.replayed, c.unrecorded, c.err)
	}
	for _, h := range o.holders {
		add(h.from, "attempt %d of %.8s begins, fence %d, completed: %t", h.attempt, h.owner, h.fence, h.completed)
		if h.end != 0 {
			add(h.end, "attempt %d of %.8s ends", h.attempt, h.owner)
		}
	}
	first := slices.MinFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) }).at
	last := slices.MaxFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) }).at
	for _, at := range promoted {
		if at > first && at < last {
			add(at, "a replica has become the primary")
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	fmt.Fprintf(&b, "history of %s:", o.op)
	for _, l := range lines {
		fmt.Fprintf(&b, "\n%10.1f ms  %s", float64(l.at-first)/1e6, l.text)
	}
	return b.String()
}
