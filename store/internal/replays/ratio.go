// Package replays estimates how common replays are.
package replays

import "sync/atomic"

// Ratio estimates which share of the latest claims were replays. A store that looks
// for a completed record before it claims saves most of the work of a replay and adds a
// round trip to every other claim, so it pays only while replays are common.
//
// It is safe for concurrent use. Of two counts at the same moment one may be lost, which
// an estimate can bear.
type Ratio struct{ share atomic.Uint32 } // in parts of recentWhole

const (
	recentWhole  = 1 << 20
	recentWeight = 64 // a claim counts for one part in so many
	recentCommon = recentWhole * 2 / 5
)

// Count adds one claim.
func (r *Ratio) Count(replay bool) {
	share := r.share.Load()
	if replay {
		share += (recentWhole - share) / recentWeight
	} else {
		share -= share / recentWeight
	}
	r.share.Store(share)
}

// Common reports whether more than about 40 % of the latest claims were replays.
func (r *Ratio) Common() bool { return r.share.Load() > recentCommon }
