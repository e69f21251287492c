package batching

import (
	"context"
	"time"
)

// The defaults of a [Config].
const (
	DefaultMaxCalls = 128
	DefaultMaxBytes = 256 << 10
	DefaultLarge    = 64 << 10
)

// Config configures a [Queue]. Every field but Send has a default. With the defaults, a
// queue has one lane, for a sender of round trips.
type Config[T any] struct {
	// Send sends a batch of one call or more, the oldest first, and finishes each of
	// them. It runs in a goroutine of the queue, in a context that ends when the callers
	// of all unfinished calls have left; or for a call that is alone, in the goroutine
	// and with the context of its caller. As many Sends run at once as there are busy
	// lanes, and more for calls that are large or impatient.
	//
	// The slice belongs to the queue: Send must not change it, nor use it after it
	// returned. An answer or error that concerns all calls is one Finish for each.
	Send func(ctx context.Context, batch []Sent[T])

	// Lanes is the number of batches that may be on their way at once. Zero means one.
	Lanes int

	// PerLane is the number of calls that have to wait for each busy lane before a batch
	// takes another one. Zero takes a free lane for any call. Where many calls share a
	// batch, fewer lanes make larger batches, and those cost less.
	PerLane int

	// Yields is how often the goroutine that makes up a batch lets others run before, so
	// that they can add their calls. Zero is right for senders of round trips, where
	// calls gather while the lanes are busy.
	Yields int

	// Later says that Send may return before the calls of its batch are finished. By
	// default it finishes all of them, and its lane is busy until it returns. The context
	// of a batch of several calls has no end then.
	Later bool

	// Begins says that Send calls [Sent.Begin] for each call just before it sends it, and
	// sends only those for which that returns true. Until then a call can be withdrawn,
	// while Send waits for a connection for example. By default a call counts as sent as
	// soon as Send has it.
	Begins bool

	// Inline reports whether a call that is alone may be sent in the goroutine of its
	// caller, with its context, which saves a goroutine. Nil means always. It says no
	// where a Send may block for longer than that context, or must not be cut short by
	// it.
	Inline func(*T) bool

	// MaxCalls and MaxBytes bound a batch by the number of its calls and the sum of their
	// sizes. Zero means [DefaultMaxCalls] and [DefaultMaxBytes].
	MaxCalls, MaxBytes int

	// Large is the size above which a call is sent alone, at once. Zero means
	// [DefaultLarge].
	Large int

	// Patience is the time that a call needs to have left to wait for a lane. One with
	// less is sent alone, at once. Zero lets every call wait.
	Patience time.Duration
}

func (c Config[T]) withDefaults() Config[T] {
	c.Lanes = max(c.Lanes, 1)
	for _, of := range []struct {
		field    *int
		standard int
	}{
		{&c.MaxCalls, DefaultMaxCalls},
		{&c.MaxBytes, DefaultMaxBytes},
		{&c.Large, DefaultLarge},
	} {
		if *of.field <= 0 {
			*of.field = of.standard
		}
	}
	return c
}
