package protocol

import reprise "github.com/reprise-go/reprise/core"

// exit is how a handler left, as the middleware saw it.
type exit uint8

const (
	returned exit = iota // it returned; its response is whole
	panicked             // it panicked before it wrote anything
	cut                  // its response was cut short, or it took the connection
)

// resolution is how an attempt is resolved.
type resolution uint8

const (
	keep      resolution = iota // record the response
	keepEmpty                   // record a 500 without a body in its place
	keepCut                     // record that there is no complete response
	release                     // release the claim
)

// resolve decides how an attempt is resolved (R31, R33, R34; presets in package reprise).
// The first row that matches wins.
//
//	exit                   decided by            → resolution
//	any                    the handler: release  → release
//	panicked               the preset            → release | keepEmpty
//	cut                    the preset            → release | keepCut
//	returned               the handler: keep     → keep
//	returned               Config.Keep.Decide         → keep | release
//	401 407 408 425 429    –                     → release
//	307 308                –                     → release
//	5xx                    the preset            → release | keep
//	everything else        –                     → keep
func resolve(e exit, status int, preset reprise.Preset, handler, policy Decision) resolution {
	byPreset := func(atMostOnce resolution) resolution {
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
	case handler == KeepResponse:
		return keep
	case policy == KeepResponse:
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
