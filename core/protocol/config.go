package protocol

import (
	"context"
	"errors"
	"io"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// Config is the policy of a [Guard]. The zero value of every field is its documented
// default. Fields that belong together are in groups, such as Limits.
type Config struct {
	// Label names the policy in events, metrics and records: up to 32 bytes of printable
	// US-ASCII, without data of a client. It may be empty.
	Label string

	// Engine tunes the engine that [New] makes. [Over] and [Guard.With] refuse it, because
	// they use an engine that exists.
	Engine reprise.Config

	// Skip, if not nil, returns true for requests to which the policy does not apply. They
	// pass through untouched, with a key or without. It is called for every request of a
	// keyed method, and must not read the body.
	Skip func(ctx context.Context, r *Request) bool

	// Methods are the methods that are keyed, in upper case; a key of another is ignored.
	// The default is POST and PATCH. GET, HEAD, OPTIONS, TRACE and CONNECT are never keyed.
	Methods []string

	// Required refuses a request of a keyed method without a key, which otherwise passes
	// unprotected.
	Required bool

	// Key says where the key of a request is. The default is the header Idempotency-Key. See
	// [KeyHeader] for another one, and for more than one, and [KeyField], [KeyParam],
	// [KeyFunc] and [KeyContent] for other places.
	Key KeySource

	// KeyMode says which forms of a key a header field may have. The default is Compat.
	KeyMode KeyMode

	// Endpoint is a stable name that becomes part of the operation's identity, for clients
	// that use one key for several calls. The default is none: a key that comes back at
	// another endpoint is refused with 422.
	Endpoint string

	// Preset decides how failures and lapsed attempts are treated. The default is
	// [reprise.Recoverable].
	Preset reprise.Preset

	// Retention is how long a response is replayed, counted from its completion: 1 ms to
	// 10 years. The default is the engine's, 24 h. With AtMostOnce it is, together with the
	// Horizon, at least the engine's MaxRun and Lease: the record of an operation whose
	// process died is kept from its claim for as long, and then its key is new. That is not
	// asked of [KeyContent], nor where MaxRun has no bound.
	Retention time.Duration

	// Horizon is how much longer than its retention a key is remembered, so that nothing
	// runs again. When the retention of a response has ended, a retry gets 409
	// result-expired until the horizon has ended too; then the key is new. A lapsed record
	// is remembered as long. Together they are 10 years at most. The default is none: the
	// key is forgotten with the response. See docs/reference/options.md.
	Horizon time.Duration

	// MaxAttempts is how many attempts an operation may have: a lapsed record is not taken
	// over after the last one. The default is unlimited.
	MaxAttempts int

	// Wait is how long a duplicate waits for the first request to finish, to get its
	// replay. The default is none: a duplicate gets 409 at once.
	Wait time.Duration

	// FailOpen runs the handler unprotected when the store's server could not be reached,
	// instead of answering 503: see [reprise.Operation.FailOpen]. The response then carries
	// Idempotency-Status: unprotected. An operation may run twice. FailOpen cannot be
	// combined with AtMostOnce, with Horizon or Transactional.
	FailOpen bool

	// Transactional commits what a handler writes in the store's transaction with its
	// response, or not at all: its effects happen exactly once. The package of the store
	// says how the handler gets the transaction, which begins when it asks. Responses are
	// held back until then; one of 400 and above is kept without the effects. The default
	// lease of [New] is 10 s then. The store must be in an SQL database, and FailOpen is
	// refused. See docs/guides/transactional.md.
	Transactional bool

	// Limits bounds keys and bodies.
	Limits Limits

	// Oversize is the response to retries whose body was not kept. The default is Summary.
	Oversize Oversize

	// Offload keeps the bodies that are longer than Limits.ResponseBody. The default is
	// none: they are not kept.
	Offload Offloading

	// Fingerprint decides which requests count as the same one.
	Fingerprint Fingerprinting

	// Keep says which responses are kept, which of their fields, and what is kept beside
	// them.
	Keep Keeping

	// Seal encrypts the responses that records keep. The default is none: responses are
	// stored in the clear. It is one for all guards that share keys, and
	// docs/guides/sealing.md says in which order a deployment turns it on.
	Seal Sealing

	// Describe, if not nil, returns a short text for operators, kept in the record, such as
	// its route, tenant, host and trace. The record has it from the claim on, and the
	// programs for operators show it (see
	// [github.com/reprise-go/reprise/core/store.Record]). Clients never see it. It is called
	// for each request with a key, before its claim, and must not read the body. Records
	// have it in the clear: it must not contain anything of the key or the body. Up to 255
	// bytes of printable US-ASCII: a longer text is cut and ends in "...", and each other
	// character becomes a "?". In the place of a text with the key in it, the record says
	// that it was withheld, and if Describe panics, it has none; the observer is notified of
	// both (see [EventDescription] and [EventPanic]). A key of less than 8 bytes is not
	// withheld: it is in many texts that are not about it.
	Describe func(ctx context.Context, r *Request) string

	// Expires announces the end of the retention in the field Idempotency-Key-Expires, a
	// Date of RFC 9651 such as @1795305600, of a response that is recorded and of its
	// replays. Until then a retry is no new request. It is an estimate by the clock of this
	// process, rounded down, because the store counts the retention by its own clock. A
	// response that leaves before it is recorded, as a stream does, carries none, but its
	// replays do. A value that the handler set stays.
	Expires bool

	// Problems is the form of the responses that refuse a request.
	Problems ProblemFormat
}

// Limits bounds the keys and bodies that a guard reads and keeps.
type Limits struct {
	// Key bounds the decoded key, in bytes: 36 to 4,096. The default is 255.
	Key int

	// RequestBody bounds the body of a keyed request, in bytes. A larger one is refused with
	// 413. The default is 1 MiB.
	RequestBody int

	// ResponseBody bounds the response body that is kept in the record, in bytes, up to 63
	// MiB. The first client gets a larger one in full. It is offloaded, or its retries
	// get the response of Config.Oversize. The default is 1 MiB.
	ResponseBody int
}

// Oversize is the response of a retry if the body of the first one was not kept.
type Oversize uint8

const (
	// Summary answers with the stored status and fields, the body {"status":"completed"}
	// and Idempotency-Body: omitted.
	Summary Oversize = iota

	// Unavailable answers 409 result-unavailable.
	Unavailable
)

// Offloading keeps bodies that are longer than Limits.ResponseBody in a blob store,
// before the record is completed, so that retries get all of such a body: byte for byte,
// with its length and digest checked before the first byte leaves. A blob that is missing
// or damaged answers 409 result-unavailable, never another body nor a part, and one that
// cannot be read at the moment 503 store-unavailable.
//
// A body is not kept if it is longer than MaxBody, if it has trailers, if there is no
// room for its temporary file, and if the blob store fails or is slower than Timeout: the
// client has the response then, its retries get the response of Config.Oversize, and
// Stats and the observer tell ([EventBlobError]). Where the effects commit with
// the response, they are rolled back instead: 503 not-applied, or 500 response-too-large
// for a body that can never be kept.
//
// The zero value does not offload and cannot replay an offloaded body: retries get 503.
// So a deployment gives every process the Blobs with ReadOnly before the first one
// offloads, and keeps them so until the last record has ended after it stops.
type Offloading struct {
	// Blobs is where bodies are kept: see [BlobStore]. Setting it turns offloading on.
	// Without it, the other fields are refused.
	Blobs BlobStore

	// ReadOnly replays the bodies that other guards have offloaded, and offloads none.
	ReadOnly bool

	// MaxBody bounds a body that is offloaded, in bytes: more than Limits.ResponseBody, and
	// up to 1 TiB. The default is 256 MiB.
	MaxBody int64

	// Timeout bounds how long a request waits for Blobs, 1 ms to 1 h. The first request
	// waits for its body to be written, after its handler returned, and a retry for it to
	// be read and checked, before the first byte leaves. The default is 10 s.
	Timeout time.Duration

	// Dir is the directory of the temporary files that a body goes through, on its way to
	// Blobs and back. They are encrypted with keys that only the process has, and have no
	// name where the system allows it. The default is [os.TempDir]. A directory in memory
	// makes the files memory.
	Dir string

	// MaxSpool bounds the temporary files of first responses, in bytes, and those of
	// replays. A first response that finds no room is not kept, and a replay is answered
	// with 503. Clients that read replays slowly take no room from first responses. A body
	// that its client has not read for 10 s breaks off when another one finds no room. The
	// default is 4 GiB, and at least MaxBody.
	MaxSpool int64
}

// writes reports whether bodies are offloaded.
func (c *Offloading) writes() bool { return c.Blobs != nil && !c.ReadOnly }

// BlobStore keeps the response bodies that [Offloading] moves out of the records. Package
// repriseblob implements it over the buckets of S3, Google Cloud Storage and Azure, over
// files, and in memory.
//
// A name is the day on which the blob was written and the SHA-256 of its bytes, such as
// "20261122/9f86d081…": letters, digits and one slash. A blob never changes. A body is
// compared with its record before the first byte is sent, so a store that loses or
// damages a blob causes no wrong response.
//
// A blob outlives its record: a sweep, or a lifecycle rule of the bucket, deletes those
// that are older than every record. It deletes by the day in the name, or by the age of
// the object, which is at most a day younger. It cannot meet a writer: a name is written
// only on its own day.
//
// Both methods are called from many goroutines. They return soon after ctx ends, and do
// not use their arguments after they returned. A panic counts as an error.
type BlobStore interface {
	// Put stores body under name, whole or not at all: a reader of the name never finds a
	// part. A name that is there already has the same bytes; it is written again, or its
	// age begins anew. The error says that the blob may be missing.
	Put(ctx context.Context, name string, body *io.SectionReader) error

	// Open returns the bytes under name; the caller closes the reader. ctx also ends the
	// reading. The error wraps [ErrNoBlob] only where the store knows that there is no
	// such blob: its retries get 409 result-unavailable. Any other error, also of the
	// reader, is taken for one that passes: 503 store-unavailable. A reader that ends
	// early without an error is taken for a damaged blob.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
}

// ErrNoBlob says that a [BlobStore] has no blob of a name.
var ErrNoBlob = errors.New("reprise: the blob store has no blob of this name")

// Fingerprinting decides which requests count as the same one.
type Fingerprinting struct {
	// Func digests the content of a request. The default is [DefaultFingerprint].
	Func Fingerprinter

	// Omit lists JSON pointers (RFC 6901) to the parts of a JSON body that differ between
	// attempts, such as "/sent_at" and the "/id" of JSON-RPC. A retry may have others, or
	// none. It needs CanonicalJSON as Func, and up to 32 pointers of up to 1,024 bytes, none
	// of which leads into another. A body that is digested byte by byte is digested with
	// those parts. After a change of the list, retries of requests that are in flight or
	// recorded may get 422.
	Omit []string

	// Headers names the request fields that are added to the fingerprint, with any Func. An
	// example is an API version. List "Host" if one process serves several hosts: without
	// it, and with one key space for all of them, a request to the live host may get the
	// replay of the sandbox host's response. Content-Type counts with its parameters if it
	// is listed, such as the boundary of a form, which clients choose anew for each attempt.
	// After a change of the list, retries of requests that are in flight or recorded get
	// 422. The headers of the key are refused: one key has several notations.
	Headers []string
}

// Keeping says which responses are kept for replays, and which of their fields.
type Keeping struct {
	// Headers names the response fields that are kept; those of a single response, such as
	// Date and Set-Cookie, never are (R14). The default is every field that can be kept.
	// Content-Type, Content-Encoding and Content-Range are always kept: without them the
	// stored body cannot be read.
	Headers []string

	// Decide decides whether a complete response is kept, or its outcome is unknown. It is
	// called for every keyed run whose response is complete, or whose client left a body
	// that is too long to be kept, except for those without a claim (FailOpen), which leave
	// no record to decide about. ByPreset leaves the decision to the status and the preset.
	Decide func(e Ending) Decision

	// Annotate, if not nil, returns a short text that is kept beside a response, such as
	// the traceparent of its trace. Replays give it to the observer (see
	// [reprise.Event.Annotation]), and Annotation of package operate reads it. Clients never
	// see it. It is called once for each response that is recorded: by [Payload], with the
	// context of its caller, or after the handler returned, with the context that it was
	// given. Up to 255 bytes of printable US-ASCII; any other text is not kept.
	Annotate func(ctx context.Context) string
}

// ProblemFormat is the form of refusals.
type ProblemFormat struct {
	// Base is the URI to which a problem's code is appended to form its type. The default
	// is this project's page of problems.
	Base string

	// Write makes the response to a problem. The default is application/problem+json. It
	// gets the request for the values of a company's own error format, such as the language
	// and the request ID, and the context, whose values are those of the request or of the
	// handler. It must not read the body, and must not put anything into the answer that a
	// client could not see otherwise. It is called from many goroutines.
	Write func(ctx context.Context, r *Request, p Problem) Response
}
