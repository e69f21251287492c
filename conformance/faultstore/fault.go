package faultstore

import (
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Fault is the fault of one call. The zero value is [Pass].
type Fault struct {
	kind  kind
	err   error
	delay time.Duration
	gate  <-chan struct{}
	value any
}

type kind uint8

const (
	pass kind = iota
	failBefore
	failAfter
	hang
	hangAfter
	executeLate
	delay
	hold
	panics
)

// Pass executes the call and returns its result.
func Pass() Fault { return Fault{} }

// FailBefore returns err and does not execute the call. The error should wrap a sentinel
// that permits this, such as [store.ErrUnavailable] or [store.ErrUnknown].
func FailBefore(err error) Fault { return Fault{kind: failBefore, err: err} }

// FailAfter executes the call, drops its result, and returns err.
func FailAfter(err error) Fault { return Fault{kind: failAfter, err: err} }

// LoseReply executes the call and returns [store.ErrUnknown], as when a connection
// breaks before the result comes.
func LoseReply() Fault {
	return FailAfter(fmt.Errorf("%w: faultstore: reply lost", store.ErrUnknown))
}

// Hang does not execute the call. It returns [store.ErrUnknown] when the call's context
// ends or the test lets it go.
func Hang() Fault { return Fault{kind: hang} }

// HangAfter executes the call and keeps the result back. It returns [store.ErrUnknown]
// when the call's context ends or the test lets it go.
func HangAfter() Fault { return Fault{kind: hangAfter} }

// ExecuteLate executes the call d after it was made, even if its caller has given up, as
// when a request waits in a buffer of the network. The caller gets [store.ErrUnknown]
// when its context ends or the test lets it go; if its context cannot end, it gets it
// after the execution. See [Faults.Wait].
func ExecuteLate(d time.Duration) Fault { return Fault{kind: executeLate, delay: d} }

// Delay waits for d and then executes the call. If the call's context ends before, or the
// test lets the call go, it returns [store.ErrUnknown] and does not execute.
func Delay(d time.Duration) Fault { return Fault{kind: delay, delay: d} }

// Hold executes the call when gate is closed or has a value for it. If the call's context
// ends before, or the test lets the call go, it returns [store.ErrUnknown] and does not
// execute.
func Hold(gate <-chan struct{}) Fault { return Fault{kind: hold, gate: gate} }

// Panic panics with v and does not execute the call.
func Panic(v any) Fault { return Fault{kind: panics, value: v} }
