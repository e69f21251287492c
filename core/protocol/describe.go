package protocol

import (
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// This file has the facts about a guard that package contract makes the contract of an
// API of.

// Engine returns the engine of the guard.
func (g *Guard) Engine() *reprise.Engine { return g.engine }

// Problems returns every refusal that the guard can give, each with the time after which
// it asks for a retry.
func (g *Guard) Problems() []Problem {
	var list []Problem
	for _, entry := range problemTable {
		if g.answers(entry.Code) {
			list = append(list, g.problems.of(entry.Code, retryTimes[entry.Code]))
		}
	}
	return list
}

// retryTimes are the times after which the refusals ask for a retry.
var retryTimes = map[Code]time.Duration{
	CodeInProgress: retryRunning, CodeNotApplied: retryRunning, CodeStoreUnavailable: retryStore,
}

// answers reports whether the guard can answer with the code.
func (g *Guard) answers(code Code) bool {
	switch code {
	case CodeKeyMissing:
		return g.cfg.Required
	case CodeOutcomeUnknown:
		return g.cfg.Preset == reprise.AtMostOnce || g.cfg.MaxAttempts > 0
	case CodeResultExpired:
		return g.cfg.Horizon > 0
	case CodeNotApplied, CodeResponseTooLarge:
		return g.engine.Binds()
	default:
		return true
	}
}

// Keeps reports whether a whole response with this status is kept, unless its handler
// decides otherwise. If Config.Decide panics, the attempt ends as if the handler did.
func (g *Guard) Keeps(status int) (kept bool) {
	defer func() {
		if recover() != nil {
			kept = g.cfg.Preset == reprise.AtMostOnce
		}
	}()
	policy := ByPreset
	if g.cfg.Decide != nil {
		policy = g.cfg.Decide(status)
	}
	return resolve(returned, status, g.cfg.Preset, ByPreset, policy) == keep
}
