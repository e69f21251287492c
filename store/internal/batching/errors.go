package batching

import (
	"errors"
	"fmt"
)

// ErrUnfinished is the cause of an [Error] for a call that its sender forgot.
var ErrUnfinished = errors.New("the sender returned without an answer for the call")

// Error is the error of a call that its sender did not finish.
type Error struct {
	Sent bool  // the sender got the call, and may have sent it
	Err  error // the error of the call's context, [ErrUnfinished] or a [*PanicError]
}

// Error returns the text of the cause, and whether the call was sent.
func (e *Error) Error() string {
	if e.Sent {
		return "the call was sent, but not answered: " + e.Err.Error()
	}
	return "the call was not sent: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// PanicError is the cause of an [Error] when the sender of a batch panicked, or ended its
// goroutine with [runtime.Goexit].
type PanicError struct {
	Value any    // the value of the panic, nil for Goexit
	Stack []byte // the stack of its goroutine
}

// Error returns the value of the panic, without the stack.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "the sender ended its goroutine"
	}
	return fmt.Sprintf("the sender panicked: %v", e.Value)
}
