package lincheck

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reprise-go/reprise/core/store"
)

// settle completes the operations of a history with what only all of them tell: when a
// claim began, as its fence says, and which calls the store may have executed twice.
//
// A fence is an instant of the store's clock, and nothing promises that this is the clock
// of the process that recorded the history. How far the two are apart follows from the
// history: each claim began between its call and its answer. Where no distance satisfies
// all claims, as when one of the clocks was set, fences say nothing about time.
func (h *recorder) settle(d *deployment) {
	apart, known := h.apart(d)
	for id, operations := range h.byID {
		settled := make([]porcupine.Operation, 0, len(operations))
		for _, o := range operations {
			in, out := o.Input.(input), o.Output.(output)
			if known && out.fence != 0 {
				began := d.clock.began(h.start, out.fence)
				out.began = window{began.from - apart.to, began.to - apart.from}
				o.Output = out
			}
			settled = append(settled, o)
			if out.refused == "" && d.executesTwice(in, out) { // the execution before the one that was answered
				again := output{at: out.at, tick: out.tick, late: out.late, unknown: true}
				settled = append(settled, porcupine.Operation{ClientId: o.ClientId, Input: in, Call: o.Call, Output: again, Return: o.Return})
			}
		}
		h.byID[id] = settled
	}
}

// apart returns how much the store's clock is ahead of this process' clock, as the claims
// of a history tell, and whether they tell anything.
func (h *recorder) apart(d *deployment) (window, bool) {
	apart, known := window{-never, never}, false
	if d.clock.fenced == nil {
		return apart, false
	}
	type claims struct {
		id    store.ID
		owner store.Owner
	}
	first := map[claims]time.Duration{} // a repeated claim may have the fence of the first
	for id, operations := range h.byID {
		for _, o := range operations {
			in, out := o.Input.(input), o.Output.(output)
			if before, again := first[claims{id, in.owner}]; in.kind == claim && (!again || out.at.from < before) {
				first[claims{id, in.owner}] = out.at.from
			}
		}
	}
	for id, operations := range h.byID {
		for _, o := range operations {
			in, out := o.Input.(input), o.Output.(output)
			if out.fence == 0 {
				continue
			}
			began := d.clock.began(h.start, out.fence)
			claimed := window{first[claims{id, in.owner}], out.at.to + out.late}.wider(out.tick)
			if apart, known = apart.and(window{began.from - claimed.to, began.to - claimed.from}); !known {
				return apart, false
			}
		}
	}
	return apart, known
}
