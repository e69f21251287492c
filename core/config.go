package reprise

import (
	"fmt"
	"time"
)

// Config tunes an [Engine]. The zero value is the documented default in every field.
type Config struct {
	// Lease is how long an attempt may go without renewal before another may take it over; the engine renews at a third of it,
	// so it bounds the wait after a crash, not the handler. Default 30 s, at least 1 s.
	Lease time.Duration

	// Retention is how long answers are replayed where the operation does not say. Default 24 h; 1 ms to 10 years.
	Retention time.Duration

	// ClaimTimeout bounds a claim, its repetitions included. Default 2 s; 10 ms to 1 min.
	ClaimTimeout time.Duration

	// CompleteTimeout bounds what a response waits for its completion or release, repetitions included. After it the
	// work goes on in the background. Default 2 s; 10 ms to 1 min.
	CompleteTimeout time.Duration

	// MaxRun cancels the context of a handler that runs longer, with the cause [ErrRunTooLong]. The lease is kept while the handler goes
	// on. Zero is no bound.
	MaxRun time.Duration

	// Waiting bounds how many callers may wait for attempts of others (see [Operation.Wait]).
	Waiting WaitLimits

	// Observer is told of every transition. Nil is none. See [NewAuditLog].
	Observer Observer
}

// WaitLimits bounds the callers that wait in one engine. Over a limit a duplicate is answered InProgress at once.
type WaitLimits struct {
	Total    int // in all; default 1,000
	PerKey   int // for one operation; default 100
	PerScope int // for one scope; default 200
}

const (
	defaultLease     = 30 * time.Second
	minLease         = time.Second
	defaultRetention = 24 * time.Hour
	defaultBudget    = 2 * time.Second
	minBudget        = 10 * time.Millisecond
	maxBudget        = time.Minute
)

// withDefaults fills in the defaults and reports the first field that is out of its range, as [ErrInvalid].
func (c Config) withDefaults() (Config, error) {
	orDefault(&c.Lease, defaultLease)
	orDefault(&c.Retention, defaultRetention)
	orDefault(&c.ClaimTimeout, defaultBudget)
	orDefault(&c.CompleteTimeout, defaultBudget)
	orDefault(&c.Waiting.Total, 1000)
	orDefault(&c.Waiting.PerKey, 100)
	orDefault(&c.Waiting.PerScope, 200)

	for _, f := range []struct {
		name              string
		value, least, top time.Duration
	}{
		{"Lease", c.Lease, minLease, MaxDuration},
		{"Retention", c.Retention, MinDuration, MaxDuration},
		{"ClaimTimeout", c.ClaimTimeout, minBudget, maxBudget},
		{"CompleteTimeout", c.CompleteTimeout, minBudget, maxBudget},
		{"MaxRun", c.MaxRun, 0, MaxDuration},
	} {
		if f.value < f.least || f.value > f.top {
			return c, fmt.Errorf("%w: Config.%s is %v, want %v to %v", ErrInvalid, f.name, f.value, f.least, f.top)
		}
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Total", c.Waiting.Total},
		{"PerKey", c.Waiting.PerKey},
		{"PerScope", c.Waiting.PerScope},
	} {
		if f.value < 1 {
			return c, fmt.Errorf("%w: Config.Waiting.%s is %d, want 1 or more", ErrInvalid, f.name, f.value)
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
