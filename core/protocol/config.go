package protocol

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol/internal/record"
	"github.com/reprise-go/reprise/core/protocol/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

// Config is the policy of a [Guard]. The zero value of every field is its documented
// default.
type Config struct {
	// Name is a short name of the policy in events, metrics and records: up to 32 bytes of
	// printable US-ASCII, and nothing of a client. It may be empty.
	Name string

	// Select, if not nil, may return another guard for a request, such as one for its
	// route, its tenant or its API version (see [Guard.With]); nil keeps this guard. It
	// is called for every request, before anything else, and must not read the body. The
	// other guard's own Select is not called.
	Select func(ctx context.Context, r *Request) *Guard

	// Skip, if not nil, returns true for requests that the policy does not concern. They
	// pass through untouched, with a key or without. It is called for every request of a
	// keyed method, and must not read the body.
	Skip func(ctx context.Context, r *Request) bool

	// Header is the name of the field that carries the key, in any case. The default is
	// "Idempotency-Key".
	Header string

	// Aliases are other names under which a key is accepted. A request with two of the
	// names is refused.
	Aliases []string

	// KeyMode says which forms of a key are accepted. The default is Compat.
	KeyMode KeyMode

	// MaxKeyLength bounds the decoded key, in bytes: 36 to 4,096. The default is 255.
	MaxKeyLength int

	// Methods are the methods that are keyed, in upper case. The default is POST and
	// PATCH. GET, HEAD, OPTIONS, TRACE and CONNECT are never keyed.
	Methods []string

	// Required refuses a request of a keyed method that has no key. By default such a
	// request passes through, unprotected.
	Required bool

	// Endpoint is a stable name of your own that becomes part of the operation's
	// identity, for APIs whose clients use one key for several calls. By default a key
	// that comes back at another endpoint is refused with 422.
	Endpoint string

	// Preset says what happens to failures and to lapsed attempts. The default is
	// [reprise.Recoverable].
	Preset reprise.Preset

	// Retention is how long a response is replayed, counted from its completion: 1 ms to
	// 10 years. The default is the engine's, 24 h.
	Retention time.Duration

	// Horizon is for operations that must not run again after their retention either: how
	// much longer a key is remembered. When the retention of a response has ended, a
	// retry gets 409 result-expired until the horizon has ended too; then the key is new.
	// A lapsed record is remembered as long. Together they are 10 years at most. The
	// default remembers nothing beyond the retention. See docs/options.md.
	Horizon time.Duration

	// MaxAttempts refuses to take over a lapsed record after that many attempts. Zero is
	// unlimited.
	MaxAttempts int

	// Wait is how long a duplicate waits for the first request to finish, to get its
	// replay. Zero answers 409 at once.
	Wait time.Duration

	// MaxRequestBody bounds the body of a keyed request, in bytes. A larger one is
	// refused with 413. The default is 1 MiB.
	MaxRequestBody int

	// MaxResponseBody bounds the response body that is kept, in bytes, up to 63 MiB. The
	// first client gets a larger one in full, and its retries get what Oversize says. The
	// default is 1 MiB.
	MaxResponseBody int

	// Oversize says what retries get if the body was not kept. The default is Summary.
	// Offload keeps a larger body in Blobs.
	Oversize Oversize

	// Blobs keeps the bodies that are longer than MaxResponseBody, if Oversize is
	// Offload. With another Oversize, it is only read, for records that were made before.
	// See [BlobStore], and Oversize for what happens when it fails.
	Blobs BlobStore

	// MaxBlob bounds a body that is offloaded, in bytes, up to 1 TiB. A larger one is not
	// kept, as with Summary. The default is 256 MiB.
	MaxBlob int64

	// BlobTimeout bounds how long a request waits for Blobs: the first request for its
	// body to be written, after its handler returned, and a retry for it to be read and
	// checked, before the first byte leaves: 1 ms to 1 h. The default is 10 s.
	BlobTimeout time.Duration

	// SpoolDir is the directory of the temporary files that an offloaded body goes
	// through, on its way to Blobs and back; they have no name there where the system
	// allows it. The default is [os.TempDir]. A directory in memory makes the files
	// memory.
	SpoolDir string

	// MaxSpool bounds the bytes of all temporary files of the guard at a time. A first
	// response that finds no room is not kept, as with Summary, and a replay is answered
	// with 503. The default is 4 GiB, and at least MaxBlob.
	MaxSpool int64

	// Fingerprint digests what a request asks for. The default is [DefaultFingerprint].
	Fingerprint Fingerprinter

	// FingerprintHeaders names request fields that change what a request asks for, and
	// adds them to the fingerprint, whatever Fingerprint is. An example is an API
	// version. List "Host" if one process serves several hosts: without it, and with one
	// key space for all of them, a request to the live host may get the replay of the
	// sandbox host's response. A change of the list answers the retries of requests that
	// are in flight or recorded with 422.
	FingerprintHeaders []string

	// KeepHeaders names the response fields that are kept for replays. Nil keeps every
	// field except those that belong to a single response (R14). Content-Type,
	// Content-Encoding and Content-Range are always kept: without them the stored body
	// cannot be read.
	KeepHeaders []string

	// Seal encrypts the responses that records keep. By default nothing is encrypted. It
	// is one for all guards that share keys, and docs/sealing.md says in which order a
	// deployment turns it on.
	Seal Sealing

	// Decide decides by the status of a complete response whether it is kept. It is
	// called for every keyed run. ByPreset leaves the decision to the status and the
	// preset. For a response of gRPC, status is the HTTP status that its Grpc-Status
	// stands for, such as 503 for UNAVAILABLE.
	Decide func(status int) Decision

	// Annotate, if not nil, returns a short text that is kept beside a response, such as
	// the traceparent of its trace: replays give it to the observer (see
	// [reprise.Event.Annotation]), and [Annotation] reads it. Clients never see it. It is
	// called with the context of the handler after the handler returned. Up to 255 bytes
	// of printable US-ASCII; anything else keeps nothing.
	Annotate func(ctx context.Context) string

	// FailOpen runs the handler unprotected when the store is unavailable, instead of
	// answering 503. The response then carries Idempotency-Status: unprotected. An
	// operation may run twice. FailOpen cannot be combined with AtMostOnce.
	FailOpen bool

	// Expires announces the end of the retention: a response that is recorded carries
	// Idempotency-Key-Expires, a Date of RFC 9651 such as @1795305600, and its replays
	// carry the same value. Until then a retry is no new request. It is an estimate by
	// the clock of this process, rounded down, because the store counts the retention by
	// its own clock. A response that leaves before it is recorded, as a stream does,
	// carries none, but its replays do. A value that the handler set stays.
	Expires bool

	// PolicyURL is the URI of the page on which the API publishes its policy, such as
	// that of package contract. Responses to requests with a key, and all problems, then
	// carry Link: <…>; rel="describedby", beside the links that they have. A kept
	// response is replayed with the link that it had. By default only the problems about
	// a key have a link, to their type.
	PolicyURL string

	// ProblemBase is the URI to which a problem's code is appended to form its type. The
	// default is this project's documentation.
	ProblemBase string

	// WriteProblem makes the response to a problem. Nil writes application/problem+json.
	// It gets the request for what a company's own error format needs, such as the
	// language and the request ID, and the context, whose values are those of the request
	// or of the handler. It must not read the body, and must not put anything into the
	// answer that a client could not see otherwise. It is called from many goroutines.
	WriteProblem func(ctx context.Context, r *Request, p Problem) Response
}

// Oversize says what a retry gets if the first response was not kept in full.
type Oversize uint8

const (
	// Summary answers with the stored status and fields, the body {"status":"completed"}
	// and Idempotency-Body: omitted.
	Summary Oversize = iota

	// Unavailable answers 409 result-unavailable.
	Unavailable

	// Offload keeps the body in Config.Blobs, before the record is completed, so that
	// retries get all of it: byte for byte, with its length and digest checked before the
	// first byte leaves. A blob that is missing or damaged answers 409
	// result-unavailable, never another body nor a part, and one that cannot be read at
	// the moment 503 store-unavailable.
	//
	// A body is not kept, as with Summary, if it is longer than Config.MaxBlob, if it has
	// trailers, and if the blob store fails or is slower than Config.BlobTimeout: the
	// client has the response then, and Stats and the observer tell
	// ([reprise.EventBlobError]). Where the effects commit with the response, they are
	// rolled back instead: 503 not-applied, or 500 response-too-large for a body that can
	// never be kept.
	//
	// A process without Blobs cannot replay such a body: set Blobs in every process before
	// the first guard sets Offload.
	Offload
)

const (
	defaultHeader = "Idempotency-Key"
	defaultBody   = 1 << 20
	maxKeptBody   = 63 << 20 // leaves room for the rest of a payload
	maxKeyLength  = 4096

	defaultMaxBlob     = 256 << 20
	defaultBlobTimeout = 10 * time.Second
	maxBlobTimeout     = time.Hour
	defaultMaxSpool    = 4 << 30
)

var (
	defaultMethods = []string{"POST", "PATCH"}
	neverKeyed     = []string{"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"}
)

// withDefaults fills in the defaults and returns [store.ErrInvalid] for the first
// invalid field.
func (c Config) withDefaults() (Config, error) {
	c = c.clone()
	if c.Header == "" {
		c.Header = defaultHeader
	}
	if c.Methods == nil {
		c.Methods = defaultMethods
	}
	if c.ProblemBase == "" {
		c.ProblemBase = defaultProblemBase
	}
	orDefault(&c.MaxKeyLength, defaultKeyLimit)
	orDefault(&c.MaxRequestBody, defaultBody)
	orDefault(&c.MaxResponseBody, defaultBody)
	orDefault(&c.MaxBlob, defaultMaxBlob)
	orDefault(&c.BlobTimeout, defaultBlobTimeout)
	orDefault(&c.MaxSpool, max(defaultMaxSpool, c.MaxBlob))

	for _, n := range append([]string{c.Header}, c.Aliases...) {
		if !syntax.ValidName(n) {
			return c, invalid("Header or Aliases", "%q is not a field name", n)
		}
	}
	for i, n := range c.Aliases {
		same := func(other string) bool { return strings.EqualFold(n, other) }
		if same(c.Header) || slices.ContainsFunc(c.Aliases[:i], same) {
			return c, invalid("Aliases", "%s is listed twice", n)
		}
	}
	if err := checkMethods(c.Methods); err != nil {
		return c, err
	}
	if len(c.Name) > store.MaxLabel || !syntax.Printable(c.Name) {
		return c, invalid("Name", "%q, want up to %d bytes of printable US-ASCII", c.Name, store.MaxLabel)
	}
	for _, n := range c.FingerprintHeaders {
		if !syntax.ValidName(n) {
			return c, invalid("FingerprintHeaders", "%q is not a field name", n)
		}
	}
	c.FingerprintHeaders = sortedNames(c.FingerprintHeaders)
	for _, f := range []struct {
		name              string
		value, least, top int
	}{
		{"KeyMode", int(c.KeyMode), 0, int(Strict)},
		{"MaxKeyLength", c.MaxKeyLength, minKeyLimit, maxKeyLength},
		{"MaxAttempts", c.MaxAttempts, 0, math.MaxInt32},
		{"MaxRequestBody", c.MaxRequestBody, 1, math.MaxInt32},
		{"MaxResponseBody", c.MaxResponseBody, 1, maxKeptBody},
		{"Oversize", int(c.Oversize), 0, int(Offload)},
		{"Preset", int(c.Preset), 0, int(reprise.AtMostOnce)},
	} {
		if f.value < f.least || f.value > f.top {
			return c, invalid(f.name, "%d, want %d to %d", f.value, f.least, f.top)
		}
	}
	if !validURI(c.ProblemBase) {
		return c, invalid("ProblemBase", "%q is not a URI", c.ProblemBase)
	}
	if c.PolicyURL != "" && !validURI(c.PolicyURL) {
		return c, invalid("PolicyURL", "%q is not a URI", c.PolicyURL)
	}
	if c.Retention != 0 && (c.Retention < store.MinDuration || c.Retention > store.MaxDuration) {
		return c, invalid("Retention", "%v, want %v to %v", c.Retention, store.MinDuration, store.MaxDuration)
	}
	if c.Horizon != 0 && (c.Horizon < store.MinDuration || c.Horizon > store.MaxDuration-c.Retention) {
		return c, invalid("Horizon", "%v, want 0, or %v to %v: %v together with the retention",
			c.Horizon, store.MinDuration, store.MaxDuration-c.Retention, store.MaxDuration)
	}
	if c.Wait < 0 {
		return c, invalid("Wait", "%v is negative", c.Wait)
	}
	if err := c.Seal.check(); err != nil {
		return c, err
	}
	if err := c.checkBlobs(); err != nil {
		return c, err
	}
	if c.FailOpen && c.Preset == reprise.AtMostOnce {
		return c, invalid("FailOpen", "cannot be combined with AtMostOnce, because an operation may then run twice")
	}
	return c, nil
}

// checkBlobs checks what belongs to Offload.
func (c *Config) checkBlobs() error {
	switch {
	case c.Oversize == Offload && c.Blobs == nil:
		return invalid("Blobs", "Offload needs a blob store")
	case c.MaxBlob < 1 || c.MaxBlob > record.MaxBlob:
		return invalid("MaxBlob", "%d, want 1 to %d", c.MaxBlob, int64(record.MaxBlob))
	case c.Oversize == Offload && c.MaxBlob <= int64(c.MaxResponseBody):
		return invalid("MaxBlob", "%d, want more than MaxResponseBody, %d", c.MaxBlob, c.MaxResponseBody)
	case c.MaxSpool < c.MaxBlob:
		return invalid("MaxSpool", "%d, want at least MaxBlob, %d", c.MaxSpool, c.MaxBlob)
	case c.BlobTimeout < time.Millisecond || c.BlobTimeout > maxBlobTimeout:
		return invalid("BlobTimeout", "%v, want %v to %v", c.BlobTimeout, time.Millisecond, maxBlobTimeout)
	}
	return nil
}

// checkMethods refuses a list that would protect nothing without a word (R9).
func checkMethods(methods []string) error {
	if len(methods) == 0 {
		return invalid("Methods", "the list is empty, so nothing would be protected; nil means POST and PATCH")
	}
	for _, m := range methods {
		switch {
		case !syntax.ValidName(m):
			return invalid("Methods", "%q is not a method", m)
		case m != strings.ToUpper(m):
			return invalid("Methods", "%q is never matched, because methods are case-sensitive; write %q", m, strings.ToUpper(m))
		case slices.Contains(neverKeyed, m):
			return invalid("Methods", "%s is never keyed; remove it", m)
		}
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w: Config.%s: %s", store.ErrInvalid, field, fmt.Sprintf(format, args...))
}

// clone returns a copy of c that shares no list with it.
func (c Config) clone() Config {
	c.Aliases, c.Methods = slices.Clone(c.Aliases), slices.Clone(c.Methods)
	c.FingerprintHeaders, c.KeepHeaders = slices.Clone(c.FingerprintHeaders), slices.Clone(c.KeepHeaders)
	c.Seal.OtherSecrets = slices.Clone(c.Seal.OtherSecrets)
	return c
}

func orDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
