package repriseclient

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/reprise-go/reprise/client/internal/secret"
)

// UnknownOutcomeError says that a call ended without a response after at least one
// attempt that may have reached the service: the operation may have run. Retry it later
// with the key that Key returns (see [WithKey]) and the same bytes. Do not give it a new
// key before you have looked at the service's state.
//
// An [http.Client] wraps it, so use [errors.As]. Do not use [http.Client].Timeout, with
// which the client replaces it by a timeout error: set a deadline on the context instead.
type UnknownOutcomeError struct {
	Attempts int    // how many were made
	KeyHash  string // of the key: 12 hexadecimal digits, see [Service].Scope
	Err      error  // of the last attempt, or of the context

	secret.Keyed
}

// Error implements error.
func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("repriseclient: no response after %s (key %s), the operation may have run: %v", attempts(e.Attempts), e.KeyHash, e.Err)
}

// Unwrap returns Err.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// Timeout reports whether Err is a timeout. The error of an [http.Client] calls it.
func (e *UnknownOutcomeError) Timeout() bool { return isTimeout(e.Err) }

// NotSentError says that a call ended before any attempt reached the service: the
// operation did not run in this call.
type NotSentError struct {
	Attempts int    // how many were made; 0: the request was refused before
	KeyHash  string // as in [UnknownOutcomeError]; empty if there is no key
	Err      error  // of the last attempt, of the context, or why the request was refused

	secret.Keyed
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

// RedirectError says that the response to a keyed call was a redirect, which an
// [http.Client] follows with a GET without the key, and not the operation's response.
//
// After 301 or 302 no request followed: a layer before the service may have redirected
// the call, for example to https, and then the operation did not run. Repeat the call
// with the key that Key returns (see [WithKey]) at Location. After 303 the operation has
// a response, and the GET of the document that it names failed: get that document, or
// repeat the call with the key to be redirected again.
type RedirectError struct {
	Status   int    // of the response to the keyed call
	Location string // of that response; empty if it contains the key
	KeyHash  string // as in [UnknownOutcomeError]
	Err      error  // of the GET after 303; nil: there was none

	secret.Keyed
}

// Error implements error.
func (e *RedirectError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("repriseclient: the service responded with the redirect %d (key %s), and the request that followed it failed: %v", e.Status, e.KeyHash, e.Err)
	}
	return fmt.Sprintf("repriseclient: the service redirected the call with %d to %q (key %s), and a GET would not repeat it: send it there with the same key", e.Status, e.Location, e.KeyHash)
}

// Unwrap returns Err.
func (e *RedirectError) Unwrap() error { return e.Err }

// Timeout reports whether Err is a timeout.
func (e *RedirectError) Timeout() bool { return isTimeout(e.Err) }

// BodyOmittedError says that the operation ran to its end, and that the service did not
// keep the body of its response: the response of an earlier attempt had the body and was
// lost, and the replay has a stand-in. Status and Header are those of the response. A
// retry will not get the body either; look up the result by other means, such as the
// field Location. [Config].AcceptOmitted returns the stand-in instead.
type BodyOmittedError struct {
	Status   int         // of the operation's response
	Header   http.Header // without the key
	Attempts int         // how many were made
	KeyHash  string      // as in [UnknownOutcomeError]

	secret.Keyed
}

// Error implements error.
func (e *BodyOmittedError) Error() string {
	return fmt.Sprintf("repriseclient: the operation ran and responded with the status %d, and the service did not keep the body (key %s)", e.Status, e.KeyHash)
}

// ErrAttemptTimeout is wrapped by the errors of attempts that took longer than
// [Config].AttemptTimeout.
var ErrAttemptTimeout = errors.New("repriseclient: the attempt took longer than AttemptTimeout")

// ErrNotReplayable is wrapped by the error of a failed call that was not retried,
// although its bounds allowed it, because its body could not be sent again. Give the
// request a GetBody, or raise [Config].MaxRequestBuffer.
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
