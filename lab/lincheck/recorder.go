package lincheck

import (
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reprise-go/reprise/core/store"
)

// recorder collects the operations of one history, by ID.
type recorder struct {
	start time.Time
	mu    sync.Mutex
	byID  map[store.ID][]porcupine.Operation
	tally map[string]int
	wrong []error

	endless int // IDs for which the checker did not come to an end
}

// now reads the machine's clock, which is that of the servers too, in microseconds.
func (h *recorder) now() time.Duration {
	return time.Duration(time.Now().UnixMicro()-h.start.UnixMicro()) * time.Microsecond
}

func (h *recorder) add(client int, in input, out output) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byID[in.id] = append(h.byID[in.id], porcupine.Operation{
		ClientId: client, Input: in, Call: int64(out.at.from), Output: out, Return: int64(out.at.to),
	})
	switch {
	case out.refused != "":
		h.tally["unavailable"]++
	case out.unknown:
		h.tally["unknown "+string(in.kind)]++
	case in.kind == claim:
		what := out.outcome.String()
		if out.outcome == store.Claimed && out.attempt > 1 {
			what = "takeover"
		}
		h.tally[what]++
	case in.kind == renew:
		h.tally["renewal "+out.renewal.String()]++
	case in.kind == complete && !out.accepted:
		h.tally["refused completion"]++
	case in.kind == unknown && !out.accepted:
		h.tally["refused unknown"]++
	default:
		h.tally[string(in.kind)]++
	}
}
