package repriseclient

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Config says how a [Transport] calls a service. The zero value is documented in every
// field, and is right for a service that uses Reprise.
type Config struct {
	// Service says how the service spells the header, and which of its responses ask for a
	// retry.
	Service Service

	// Methods lists the methods that are retried. The default is POST and PATCH. All others
	// pass through untouched. POST, PATCH, PUT and DELETE are keyed. GET and HEAD may be
	// listed beside those: they are retried without a key, their errors are those of the
	// base transport, and the Observer is not notified of them.
	Methods []string

	// NewKey returns the key of a call that has none. The default is the function [NewKey].
	// Keys must be unguessable (128 random bits) and never repeat.
	NewKey func() string

	// MaxAttempts is the largest number of attempts of a call, the first included. An
	// attempt that finds the operation in progress does not count; the next one follows
	// after at least 100 ms. The default is 10; 1 turns retries off.
	MaxAttempts int

	// MaxElapsed is how long after the beginning of a call another attempt may begin. It
	// alone bounds the wait for an operation in progress, so it should be longer than the
	// lease of the service (30 s is the default of Reprise) and the time that its operations
	// take. The default is two minutes. It does not end a running attempt; the context of
	// the request does.
	MaxElapsed time.Duration

	// AttemptTimeout is how long one attempt may take, until its response is complete (see
	// MaxResponseBuffer) or its body begins. An attempt that takes longer is given up and
	// retried. The default is none: only the context of the request ends an attempt.
	AttemptTimeout time.Duration

	// Delay is the longest wait before the first retry, if the service names none. Before
	// retry n the client waits for a random time up to the smaller of Delay·2ⁿ⁻¹ and
	// MaxDelay ("full jitter"). The default is 200 ms.
	Delay time.Duration

	// MaxDelay bounds the wait before any retry, if the service names none. The default is
	// 10 s.
	MaxDelay time.Duration

	// MaxRetryAfter is the longest Retry-After that the client waits for. A response that
	// names a longer one is returned at once. The default is 30 s.
	MaxRetryAfter time.Duration

	// Budget bounds the retries of all calls together.
	Budget Budget

	// RetryServerErrors retries the status 500 as well, unless a problem document or the
	// mark of a replay says that it is useless. It helps with services that run a failed
	// operation again (Reprise with its preset Recoverable, the default there).
	RetryServerErrors bool

	// Retry, if set, decides last whether an attempt may be repeated, within the bounds and
	// the Budget. It gets the response, or the error if there is none, and the decision of
	// all other rules. It must be safe for concurrent use, and leave the body of the
	// response as it is, except for [ProblemOf]. A repeated attempt has the same key, so a
	// response that was recorded will not change.
	Retry func(resp *http.Response, err error, retry bool) bool

	// MaxRequestBuffer bounds the bytes of a request body without GetBody that are buffered
	// for retries. A request with a longer body is sent once, with its key and without
	// retries. The default is 1 MiB; negative buffers none, for bodies that are written
	// while the response is read.
	MaxRequestBuffer int64

	// MaxResponseBuffer is how many bytes of a response are read before it is returned: if
	// the connection breaks within them, the call is retried. The rest is streamed, and so
	// is a response of the type text/event-stream. The default is 1 MiB; negative streams
	// all.
	MaxResponseBuffer int64

	// AcceptOmitted returns the stand-in for a body that the service did not keep as the
	// response (Idempotency-Body: omitted), for callers that need its status and fields
	// alone. [OutcomeOf] is then [AnsweredOmitted]. Otherwise the call ends with a
	// [BodyOmittedError].
	AcceptOmitted bool

	// Observer is notified of attempts and calls. The default is none.
	Observer Observer
}

// Budget bounds the retries of a [Transport]: each retry takes one token from a bucket,
// and each call puts a fifth of a token back. In a storm, when most calls fail, the
// service then gets few more requests than there are calls. A retry after a response that
// the operation is in progress takes none.
type Budget struct {
	// Burst is how many tokens the bucket holds; it is full at the start. When a process of
	// the service dies, every call that it was serving takes one for its retry: set Burst to
	// at least the number of concurrent calls. The default is 1000.
	Burst int

	// Off turns the budget off: each call retries within its own bounds.
	Off bool
}

const (
	defaultMaxAttempts   = 10
	defaultMaxElapsed    = 2 * time.Minute
	defaultDelay         = 200 * time.Millisecond
	defaultMaxDelay      = 10 * time.Second
	defaultMaxRetryAfter = 30 * time.Second
	defaultBuffer        = 1 << 20
	defaultBurst         = 1000
)

// complete returns c with its defaults, or the error that names its invalid field.
func (c Config) complete() (Config, error) {
	var err error
	if c.Service, err = c.Service.complete(); err != nil {
		return c, err
	}
	if c.Methods == nil {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	c.Methods = slices.Clone(c.Methods)
	if err := checkMethods(c.Methods); err != nil {
		return c, err
	}
	if c.NewKey == nil {
		c.NewKey = NewKey
	}
	if c.MaxAttempts < 0 {
		return c, fmt.Errorf("repriseclient: Config.MaxAttempts is %d, want at least 1", c.MaxAttempts)
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = defaultMaxAttempts
	}
	for _, d := range []struct {
		field     string
		value     *time.Duration
		otherwise time.Duration
	}{
		{"MaxElapsed", &c.MaxElapsed, defaultMaxElapsed},
		{"AttemptTimeout", &c.AttemptTimeout, 0},
		{"Delay", &c.Delay, defaultDelay},
		{"MaxDelay", &c.MaxDelay, max(defaultMaxDelay, c.Delay)},
		{"MaxRetryAfter", &c.MaxRetryAfter, defaultMaxRetryAfter},
	} {
		if *d.value < 0 {
			return c, fmt.Errorf("repriseclient: Config.%s is negative: %s", d.field, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	if c.MaxDelay < c.Delay {
		return c, fmt.Errorf("repriseclient: Config.MaxDelay is %s, less than Delay, which is %s", c.MaxDelay, c.Delay)
	}
	if c.MaxRequestBuffer == 0 {
		c.MaxRequestBuffer = defaultBuffer
	}
	if c.MaxResponseBuffer == 0 {
		c.MaxResponseBuffer = defaultBuffer
	}
	return c, c.Budget.complete()
}

func (b *Budget) complete() error {
	if b.Off && b.Burst != 0 {
		return errors.New("repriseclient: Budget.Off is set together with Budget.Burst; a budget that is off has no bounds")
	}
	if b.Burst == 0 {
		b.Burst = defaultBurst
	}
	if b.Burst < 0 {
		return fmt.Errorf("repriseclient: Budget.Burst is %d, want at least 1", b.Burst)
	}
	return nil
}

func checkMethods(methods []string) error {
	for _, m := range methods {
		if !isKeyed(m) && m != http.MethodGet && m != http.MethodHead {
			return fmt.Errorf("repriseclient: Config.Methods has %q, want POST, PATCH, PUT, DELETE, GET or HEAD", m)
		}
	}
	if !slices.ContainsFunc(methods, isKeyed) {
		return errors.New("repriseclient: Config.Methods lists no method that is keyed; leave it nil for POST and PATCH")
	}
	return nil
}

// isKeyed reports whether a listed method is keyed.
func isKeyed(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}
