package store

import (
	"errors"

	"github.com/reprise-go/reprise/core/internal/bounds"
)

// The failures of a [Store], for [errors.Is]. After a definite failure no record was
// written.
var (
	// ErrLeaseLost is definite: the caller is no longer the owner. It is also the cause
	// with which a handler's context is cancelled when its lease is lost.
	ErrLeaseLost = errors.New("reprise: lease lost")

	// ErrUnavailable is definite: the server could not be reached, or executes nothing now.
	ErrUnavailable = errors.New("reprise: store unreachable")

	// ErrBusy is definite: the operation was not executed, because the connections, slots or
	// queue of this process are exhausted, or because others changed the record each time or
	// hold it. It does not mean that the server is away: an engine never fails open for it.
	ErrBusy = errors.New("reprise: store busy")

	// ErrUnknown says that the operation may have been executed, or may still be. Repeat
	// it with the same owner.
	ErrUnknown = errors.New("reprise: outcome of the store operation unknown")

	// ErrNotApplied is definite: the transaction of a handler was rolled back, and its
	// effects with it. The record is as it was.
	ErrNotApplied = errors.New("reprise: rolled back, nothing was applied")

	// ErrNotReplicated says that the operation was executed, but fewer replicas confirmed
	// it than the store is configured to wait for. A failover may lose it.
	ErrNotReplicated = errors.New("reprise: not confirmed by enough replicas")

	// ErrCorrupt is definite: the record is unreadable. It has an unknown version or
	// state, misses a field, or has a value of another type.
	ErrCorrupt = errors.New("reprise: record unreadable")

	// ErrFull is definite: the store has no room. It evicts no record that is live or valid.
	ErrFull = errors.New("reprise: store full")

	// ErrMisconfigured says that the server, or the client that was passed to the store,
	// turned out to be unable to keep the guarantees. The text names the remedy.
	ErrMisconfigured = errors.New("reprise: misconfigured")

	// ErrInvalid is definite: an argument or a field of a configuration is outside its
	// documented range.
	ErrInvalid = bounds.ErrInvalid

	// ErrClosed is definite: the engine or the store is closed.
	ErrClosed = errors.New("reprise: closed")

	// ErrNotFound says that there is no record to inspect.
	ErrNotFound = errors.New("reprise: no such record")

	// ErrRecordChanged says that a record changed since it was inspected, so it was not
	// resolved.
	ErrRecordChanged = errors.New("reprise: record changed since it was inspected")
)
