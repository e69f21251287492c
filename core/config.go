package reprise

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Config tunes an [Engine]. The zero value is the documented default in every field.
type Config struct {
	// Lease is how long an attempt may go without renewal before another may take it
	// over. The engine renews at a third of it, so it bounds the wait after a crash, not
	// the handler. Default 30 s, 10 s of a guard that is made transactional; at least 1 s.
	Lease time.Duration

	// Retention is how long a result is replayed if its operation names no retention.
	// Default 24 h; 1 ms to 10 years.
	Retention time.Duration

	// ClaimTimeout bounds a claim, repetitions included. Default 2 s; 10 ms to 1 min.
	ClaimTimeout time.Duration

	// CompleteTimeout bounds how long a result waits for its completion or release,
	// repetitions included. After it the work continues in the background. Default 2 s; 10
	// ms to 1 min.
	CompleteTimeout time.Duration

	// MaxRun cancels the context of a handler that runs longer, with the cause
	// [ErrRunTooLong]. If the handler has not returned a Lease later, its record says that
	// its outcome is unknown, whatever the preset: retries get Lapsed, and never run beside
	// the handler, until it is resolved, or its retention and horizon have ended; see
	// [Attempt.Unknown]. A transaction of the store is rolled back at its own bound instead.
	// Neither a client disconnect nor a deadline outside of Begin ends a run. What the
	// caller does after the handler is not bounded by it: see [Attempt.Returned]. Default
	// 1 h; -1 is no bound, so that a handler that hangs keeps its key.
	MaxRun time.Duration

	// Waiting bounds the callers that wait for attempts of others (see [Operation.Wait]).
	Waiting WaitLimits

	// Background bounds the completions and releases that are repeated after the result was
	// sent, because the store did not take them in time. Over a limit they are dropped,
	// counted and reported, and their claims lapse. See [Stats].
	Background BackgroundLimits

	// Detach copies the values of a request's context that may outlive it, such as its trace
	// or tenant, into a context that does not refer to the request. The store and the
	// observer see them in work after the request. It is called once for each attempt, while
	// the request lives. The default is none: such work sees no values, because frameworks
	// reuse the contexts of their requests.
	Detach func(context.Context) context.Context

	// Log gets what an operator must know, and no successes. That is a misconfigured or full
	// store, unreadable records, requests without a definite result, scopes that are
	// unknown, records that lapsed and were taken over or need a decision, lost leases,
	// results that are not recorded, dropped work, handlers that ran twice or without a
	// claim, and panics of the policy. Each message is logged at most every ten seconds,
	// with the number of those skipped; the resolution of a record by an operator always is.
	// The default is the default logger of slog at the time of each event. A logger over
	// [slog.DiscardHandler] silences it.
	Log *slog.Logger

	// Observer is notified of every transition, beside the log. See [NewAuditLog] and
	// [Observers]. The default is none.
	Observer Observer
}

// BackgroundLimits bounds an engine's work after the results were sent.
type BackgroundLimits struct {
	Tasks int   // completions, releases and marks, in all; default 1,000
	Bytes int64 // of the results to be kept; default 64 MiB

	// Age is how long a completion or release is repeated. After the first failure beyond
	// it, its lease is not renewed any more, and it is given up when that has passed. While
	// the store is away, about one of all tasks is tried a second, so the last of many is
	// given up as many seconds later. Default 10 min; 1 s to 10 years.
	Age time.Duration
}

// WaitLimits bounds the callers that wait in one engine. Over a limit, a duplicate is
// answered InProgress at once.
type WaitLimits struct {
	Total    int // in all; default 1,000
	PerKey   int // for one operation; default 100
	PerScope int // for one scope; default 200
}

const (
	defaultLease     = 30 * time.Second
	minLease         = time.Second
	defaultRetention = 24 * time.Hour
	defaultMaxRun    = time.Hour
	unboundedRun     = -1 // Config.MaxRun
	defaultBudget    = 2 * time.Second
	minBudget        = 10 * time.Millisecond
	maxBudget        = time.Minute
)

// withDefaults fills in the defaults and reports the first field that is out of its
// range, as [store.ErrInvalid].
func (c Config) withDefaults() (Config, error) {
	orDefault(&c.Lease, defaultLease)
	orDefault(&c.Retention, defaultRetention)
	orDefault(&c.ClaimTimeout, defaultBudget)
	orDefault(&c.CompleteTimeout, defaultBudget)
	orDefault(&c.MaxRun, defaultMaxRun)
	orDefault(&c.Waiting.Total, 1000)
	orDefault(&c.Waiting.PerKey, 100)
	orDefault(&c.Waiting.PerScope, 200)
	orDefault(&c.Background.Tasks, 1000)
	orDefault(&c.Background.Bytes, 64<<20)
	orDefault(&c.Background.Age, 10*time.Minute)

	for _, f := range []struct {
		name              string
		value, least, top time.Duration
	}{
		{"Lease", c.Lease, minLease, store.MaxDuration},
		{"Retention", c.Retention, store.MinDuration, store.MaxDuration},
		{"ClaimTimeout", c.ClaimTimeout, minBudget, maxBudget},
		{"CompleteTimeout", c.CompleteTimeout, minBudget, maxBudget},
		{"MaxRun", c.MaxRun, unboundedRun, store.MaxDuration},
		{"Background.Age", c.Background.Age, time.Second, store.MaxDuration},
	} {
		if f.value < f.least || f.value > f.top {
			return c, fmt.Errorf("%w: Config.%s is %v, want %v to %v", store.ErrInvalid, f.name, f.value, f.least, f.top)
		}
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"Waiting.Total", int64(c.Waiting.Total)},
		{"Waiting.PerKey", int64(c.Waiting.PerKey)},
		{"Waiting.PerScope", int64(c.Waiting.PerScope)},
		{"Background.Tasks", int64(c.Background.Tasks)},
		{"Background.Bytes", c.Background.Bytes},
	} {
		if f.value < 1 {
			return c, fmt.Errorf("%w: Config.%s is %d, want 1 or more", store.ErrInvalid, f.name, f.value)
		}
	}
	return c, nil
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
