package reprise

import (
	"errors"

	"github.com/reprise-go/reprise/core/store"
)

// Store keeps the records of an [Engine]: see [store.Store], the contract.
type Store = store.Store

// ErrLeaseLost is the cause with which the context of a handler is cancelled when its
// lease is lost: see [store.ErrLeaseLost].
var ErrLeaseLost = store.ErrLeaseLost

var (
	// ErrDropped is the error of [EventDropped]: the background gave up a completion or
	// release. See [Config].Background.
	ErrDropped = errors.New("reprise: completion or release dropped")

	// ErrRunTooLong is the cause with which a handler's context is cancelled after
	// Config.MaxRun.
	ErrRunTooLong = errors.New("reprise: attempt ran longer than MaxRun")
)
