package protocol

import reprise "github.com/reprise-go/reprise/core"

// ending is how a handler ended, from the middleware's side.
type ending uint8

const (
	whole    ending = iota // it returned, and wrote a response or none
	panicked               // it panicked before it wrote anything
	cut                    // it panicked after that, aborted, or took the connection
)

// fate is what becomes of a claim.
type fate uint8

const (
	keep      fate = iota // record the response
	keepEmpty             // record a 500 without a body in its place
	keepCut               // record that there is no complete response
	release               // forget the claim
)

// fateOf is the table of outcomes (R31, R33, R34; presets in the package reprise). The first row that fits decides.
//
//	how it ended           who or what says so           → fate
//	any                    the handler: release          → release
//	panicked               preset                        → release | keepEmpty
//	cut                    preset                        → release | keepCut
//	whole                  the handler: keep             → keep
//	whole                  Config.Outcome                → keep | release
//	401 407 408 425 429    –                             → release
//	307 308                –                             → release
//	5xx                    preset                        → release | keep
//	everything else        –                             → keep
func fateOf(e ending, status int, preset reprise.Preset, handler, policy Disposition) fate {
	byPreset := func(atMostOnce fate) fate {
		if preset == reprise.AtMostOnce {
			return atMostOnce
		}
		return release
	}
	switch {
	case handler == ReleaseKey:
		return release
	case e == panicked:
		return byPreset(keepEmpty)
	case e == cut:
		return byPreset(keepCut)
	case handler == KeepOutcome:
		return keep
	case policy == KeepOutcome:
		return keep
	case policy == ReleaseKey:
		return release
	}
	switch {
	case status == 401, status == 407, status == 408, status == 425, status == 429:
		return release
	case status == 307, status == 308:
		return release
	case status >= 500 && status <= 599:
		return byPreset(keep)
	default:
		return keep
	}
}
