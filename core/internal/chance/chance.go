// Package chance draws the engine's random numbers: its jitter.
package chance

import (
	"math/rand/v2"
	"time"
)

// seed, in a simulation, determines the draws; nil everywhere else.
var seed *uint64

// Seed makes every later draw of the process follow from n and from the instant of the
// draw, so that goroutines which one instant wakes may draw in any order. It is for
// simulations, and is called while no engine runs.
func Seed(n uint64) { seed = &n }

// Below draws from 0 to n-1. It is not for secrets. It panics unless n is positive.
func Below[T ~int64](n T) T {
	if seed != nil {
		r := rand.New(rand.NewPCG(*seed, uint64(time.Now().UnixNano()))) //nolint:gosec // to be repeated
		return T(r.Int64N(int64(n)))
	}
	return rand.N(n) //nolint:gosec // nobody gains by guessing it
}
