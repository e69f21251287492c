package protocol

import (
	"context"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// Config is the policy of a [Guard]. The zero value of every field is its documented
// default. Fields that belong together are in groups, such as Limits.
type Config struct {
	// Name is a short name of the policy in events, metrics and records: up to 32 bytes of
	// printable US-ASCII, without data of a client. It may be empty.
	Name string

	// Engine tunes the engine that [New] makes. [Over] and [Guard.With] refuse it, because
	// they use an engine that exists.
	Engine reprise.Config

	// Select, if not nil, may return another guard for a request, such as one for its
	// route, its tenant or its API version (see [Guard.With]); nil keeps this guard. It
	// is called for every request, before anything else, and must not read the body. The
	// other guard's own Select is not called.
	Select func(ctx context.Context, r *Request) *Guard

	// Skip, if not nil, returns true for requests that the policy does not concern. They
	// pass through untouched, with a key or without. It is called for every request of a
	// keyed method, and must not read the body.
	Skip func(ctx context.Context, r *Request) bool

	// Methods are the methods that are keyed, in upper case. The default is POST and
	// PATCH. GET, HEAD, OPTIONS, TRACE and CONNECT are never keyed.
	Methods []string

	// Required refuses a request of a keyed method that has no key. By default such a
	// request passes through, unprotected.
	Required bool

	// Key says where a request has its key. The default is the header Idempotency-Key. See
	// [KeyHeader] for another one, and for more than one.
	Key KeySource

	// KeyMode says which forms of a key are accepted. The default is Compat.
	KeyMode KeyMode

	// Endpoint is a stable name of your choice that becomes part of the operation's
	// identity, for APIs whose clients use one key for several calls. By default a key that
	// comes back at another endpoint is refused with 422.
	Endpoint string

	// Preset decides how failures and lapsed attempts are treated. The default is
	// [reprise.Recoverable].
	Preset reprise.Preset

	// Retention is how long a response is replayed, counted from its completion: 1 ms to
	// 10 years. The default is the engine's, 24 h.
	Retention time.Duration

	// Horizon is for operations that must not run again after their retention either: how
	// much longer a key is remembered. When the retention of a response has ended, a retry
	// gets 409 result-expired until the horizon has ended too; then the key is new. A lapsed
	// record is remembered as long. Together they are 10 years at most. By default the
	// memory ends with the retention. See docs/options.md.
	Horizon time.Duration

	// MaxAttempts refuses to take over a lapsed record after that many attempts. Zero is
	// unlimited.
	MaxAttempts int

	// Wait is how long a duplicate waits for the first request to finish, to get its
	// replay. Zero answers 409 at once.
	Wait time.Duration

	// FailOpen runs the handler unprotected when the store is unavailable, instead of
	// answering 503. The response then carries Idempotency-Status: unprotected. An
	// operation may run twice. FailOpen cannot be combined with AtMostOnce.
	FailOpen bool

	// Limits bounds keys and bodies.
	Limits Limits

	// Oversize is the response of retries whose body was not kept. The default is
	// Summary.
	Oversize Oversize

	// Offload keeps the bodies that are longer than Limits.ResponseBody. By default they
	// are not kept.
	Offload Offloading

	// Fingerprint decides which requests count as the same one.
	Fingerprint Fingerprinting

	// Keep says which responses are kept, and which of their fields.
	Keep Keeping

	// Seal encrypts the responses that records keep. By default no response is encrypted. It
	// is one for all guards that share keys, and docs/sealing.md says in which order a
	// deployment turns it on.
	Seal Sealing

	// Annotate, if not nil, returns a short text that is kept beside a response, such as the
	// traceparent of its trace: replays give it to the observer (see
	// [reprise.Event.Annotation]), and stored.Annotation reads it. Clients never see it. It
	// is called with the context of the handler after the handler returned. Up to 255 bytes
	// of printable US-ASCII; any other text is not kept.
	Annotate func(ctx context.Context) string

	// Announce adds fields to responses that tell clients about the policy.
	Announce Announcing

	// Problems is the form of refusals.
	Problems ProblemFormat
}
