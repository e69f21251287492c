package protocol

import reprise "github.com/reprise-go/reprise/core"

// This file has the facts about a guard that package contract makes the contract of an
// API of.

// Keeps reports whether a whole response with this status is kept, unless its handler
// decides otherwise. If Config.Keep.Decide panics, the attempt ends as if the handler
// did.
func (g *Guard) Keeps(status int) (kept bool) {
	defer func() {
		if recover() != nil {
			kept = g.cfg.Preset == reprise.AtMostOnce
		}
	}()
	policy := ByPreset
	if g.cfg.Keep.Decide != nil {
		policy = g.cfg.Keep.Decide(status)
	}
	return resolve(returned, status, g.cfg.Preset, ByPreset, policy) == keep
}
