package reprise

import "errors"

// The failures of a [Store] and of an [Engine]. They are matched with [errors.Is]; the errors that are returned wrap one of
// them once and never contain a key.
var (
	// ErrLeaseLost is definite: the caller is not the owner any more, and nothing was written. It is also the cause
	// with which a handler's context is cancelled when its lease is lost.
	ErrLeaseLost = errors.New("reprise: lease lost")

	// ErrUnavailable is definite: the store could not be reached, and the operation was not executed.
	ErrUnavailable = errors.New("reprise: store unavailable")

	// ErrUnknown says that the operation may have been executed, or may still be. Repeat it with the same owner. It is the
	// class of every failure that cannot be placed.
	ErrUnknown = errors.New("reprise: outcome of the store operation unknown")

	// ErrNotApplied is definite: the transaction of an Atomic claim was rolled back, its effects with it.
	ErrNotApplied = errors.New("reprise: not applied, rolled back")

	// ErrNotReplicated says that the operation was executed and fewer replicas confirmed it than the store was told to
	// wait for. A failover may lose it.
	ErrNotReplicated = errors.New("reprise: not confirmed by enough replicas")

	// ErrCorrupt says that the record cannot be read: an unknown version or state, a missing field, a value of another
	// type. Nothing was written.
	ErrCorrupt = errors.New("reprise: record corrupt")

	// ErrFull is definite: the store holds as much as it may and evicts nothing that is live or valid.
	ErrFull = errors.New("reprise: store full")

	// ErrMisconfigured says that the server or the client cannot give the guarantees; the text says what to change.
	ErrMisconfigured = errors.New("reprise: misconfigured")

	// ErrInvalid is definite: an argument is outside its documented range. Nothing was read or written.
	ErrInvalid = errors.New("reprise: invalid argument")

	// ErrClosed says that the engine, or the store, was closed. Nothing was executed.
	ErrClosed = errors.New("reprise: closed")

	// ErrNotFound says that an inspected ID has no record.
	ErrNotFound = errors.New("reprise: no such record")

	// ErrRecordChanged says that a record is not the one that was looked at, so it was not resolved.
	ErrRecordChanged = errors.New("reprise: record changed")

	// ErrDropped says that the background gave a completion or release up; see [Config].Background.
	ErrDropped = errors.New("reprise: background work dropped")

	// ErrRunTooLong is the cause with which a handler's context is cancelled after Config.MaxRun.
	ErrRunTooLong = errors.New("reprise: attempt ran longer than MaxRun")
)
