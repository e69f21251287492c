package repriseclient

import (
	"errors"
	"fmt"
)

// UnknownOutcomeError says that a call ended without a response after at least one
// attempt that may have reached the service: the operation may have run. Retry it later
// with the same key and the same bytes, or look at the service's state first; only then
// may it get a new key. The caller has the key if it was the caller's ([WithKey], or a
// header); a generated key is lost.
//
// An [http.Client] wraps it, so use [errors.As]. (With [http.Client].Timeout, the client
// replaces it by a timeout error: set a deadline on the context instead.)
type UnknownOutcomeError struct {
	Attempts int    // how many were made
	KeyHash  string // of the key: the first 12 hexadecimal digits of its SHA-256
	Err      error  // of the last attempt, or of the context
}

// Error implements error.
func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("repriseclient: no response after %s (key %s), the operation may have run: %v", attempts(e.Attempts), e.KeyHash, e.Err)
}

// Unwrap returns Err.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// Timeout reports whether Err is a timeout. The error of an [http.Client] asks.
func (e *UnknownOutcomeError) Timeout() bool { return isTimeout(e.Err) }

// NotSentError says that a call ended before any attempt reached the service: the
// operation did not run in this call.
type NotSentError struct {
	Attempts int    // how many were made; 0: the request was refused before
	KeyHash  string // as in [UnknownOutcomeError]; empty if there is no key
	Err      error  // of the last attempt, of the context, or why the request was refused
}

// Error implements error.
func (e *NotSentError) Error() string {
	if e.Attempts == 0 {
		return fmt.Sprintf("repriseclient: request not sent: %v", e.Err)
	}
	return fmt.Sprintf("repriseclient: not sent in %s (key %s): %v", attempts(e.Attempts), e.KeyHash, e.Err)
}

// Unwrap returns Err.
func (e *NotSentError) Unwrap() error { return e.Err }

// Timeout reports whether Err is a timeout.
func (e *NotSentError) Timeout() bool { return isTimeout(e.Err) }

// ErrAttemptTimeout is the reason in the errors of attempts that took longer than
// [Config].AttemptTimeout.
var ErrAttemptTimeout = errors.New("repriseclient: the attempt took longer than AttemptTimeout")

// ErrNotReplayable is the reason why a failed call was not retried although its bounds
// allowed it: its body could not be sent again. Give the request a GetBody, or raise
// [Config].MaxRequestBuffer.
var ErrNotReplayable = errors.New("repriseclient: not retried, because the request body cannot be sent again")

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, ErrAttemptTimeout) || errors.As(err, &t) && t.Timeout()
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}
