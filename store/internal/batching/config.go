package batching

import (
	"context"
	"time"
)

const (
	// DefaultMaxCalls is the most calls of a batch where [Config.MaxCalls] is zero.
	DefaultMaxCalls = 128

	// maxBytes bounds the sum of the sizes of the calls in a batch of several.
	maxBytes = 256 << 10
)

// Config configures a [Queue]. Every field but Send has a default. With the defaults, a
// queue has one lane.
type Config[T any] struct {
	// Send sends a batch of one call or more, the oldest first, and finishes each of them
	// before it returns; its lane is busy for as long.
	// It runs in a goroutine of the queue, with a context that ends when the callers of all
	// unfinished calls have returned. For a single call, it may run in the goroutine and
	// with the context of the caller: see Detached. As many Sends run at once as there are
	// busy lanes, and more for what [Config.Patience] sends.
	//
	// The slice belongs to the queue: Send must neither change it nor use it after it
	// returns. For an answer or error of the whole batch, Send finishes each call with it.
	Send func(ctx context.Context, batch []Sent[T])

	// Lanes is the number of batches that may be on their way at once. Zero means one.
	Lanes int

	// PerLane is how many calls have to wait for each busy lane before a batch takes another
	// lane. With zero, any call takes a free lane. Fewer lanes make larger batches, which
	// cost less.
	PerLane int

	// Yields is how often the goroutine that collects a batch first lets others run, so that
	// they can add their calls.
	Yields int

	// Begins says that Send calls [Sent.Begin] for each call just before it sends it, and
	// sends only the calls for which that returns true. Until then a call can be withdrawn,
	// for example while Send waits for a connection. By default, a call counts as sent as
	// soon as Send has it.
	Begins bool

	// Detached says that Send may block for longer than the context of a caller, or must not
	// be interrupted by it. By default a single call is sent in the goroutine and with the
	// context of its caller, which saves a goroutine.
	Detached bool

	// MaxCalls bounds the calls of a batch. Zero means [DefaultMaxCalls].
	MaxCalls int

	// Patience is how long a batch may be on its way before others may use its lane, so that
	// no call waits behind one that hangs, and how much time a call must have left to wait
	// for a lane. A call with less is sent alone, at once. Zero lets every call wait.
	Patience time.Duration
}
