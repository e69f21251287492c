package protocol

import (
	"context"
	"time"
)

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
// A body is not kept if it is longer than MaxBody, if it has trailers, and if the blob
// store fails or is slower than Timeout: the client has the response then, its retries
// get the response of Config.Oversize, and Stats and the observer tell
// ([reprise.EventBlobError]). Where the effects commit with the response, they are rolled
// back instead: 503 not-applied, or 500 response-too-large for a body that can never be
// kept.
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

	// MaxBody bounds a body that is offloaded, in bytes, up to 1 TiB: more than
	// Limits.ResponseBody. The default is 256 MiB.
	MaxBody int64

	// Timeout bounds how long a request waits for Blobs: the first request for its body to
	// be written, after its handler returned, and a retry for it to be read and checked,
	// before the first byte leaves: 1 ms to 1 h. The default is 10 s.
	Timeout time.Duration

	// Dir is the directory of the temporary files that a body goes through, on its way to
	// Blobs and back; they have no name there where the system allows it. The default is
	// [os.TempDir]. A directory in memory makes the files memory.
	Dir string

	// MaxSpool bounds the bytes of all temporary files of the guard at a time. A first
	// response that finds no room is not kept, and a replay is answered with 503. The
	// default is 4 GiB, and at least MaxBody.
	MaxSpool int64
}

// writes reports whether bodies are offloaded.
func (c *Offloading) writes() bool { return c.Blobs != nil && !c.ReadOnly }

// Fingerprinting decides which requests count as the same one.
type Fingerprinting struct {
	// Func digests the content of a request. The default is [DefaultFingerprint].
	Func Fingerprinter

	// Headers names request fields that belong to the content of a request, and adds them to
	// the fingerprint, whatever Func is. An example is an API version. List "Host" if one
	// process serves several hosts: without it, and with one key space for all of them, a
	// request to the live host may get the replay of the sandbox host's response. After a
	// change of the list, retries of requests that are in flight or recorded get 422.
	Headers []string
}

// Keeping says which responses are kept for replays, and which of their fields.
type Keeping struct {
	// Headers names the response fields that are kept. Nil keeps every field except those
	// that belong to a single response (R14). Content-Type, Content-Encoding and
	// Content-Range are always kept: without them the stored body cannot be read.
	Headers []string

	// Decide decides by the status of a complete response whether it is kept. It is
	// called for every keyed run. ByPreset leaves the decision to the status and the
	// preset. For a response of gRPC, status is the HTTP status that its Grpc-Status
	// stands for, such as 503 for UNAVAILABLE.
	Decide func(status int) Decision
}

// Announcing adds fields to responses that tell clients about the policy.
type Announcing struct {
	// Expires announces the end of the retention: a response that is recorded carries
	// Idempotency-Key-Expires, a Date of RFC 9651 such as @1795305600, and its replays
	// carry the same value. Until then a retry is no new request. It is an estimate by
	// the clock of this process, rounded down, because the store counts the retention by
	// its own clock. A response that leaves before it is recorded, as a stream does,
	// carries none, but its replays do. A value that the handler set stays.
	Expires bool

	// ReplayedHeader is the name of the field that marks a replay with the value true. The
	// default is Idempotent-Replayed, which a handler cannot set either way. Clients have
	// to know the name: a contract has it, and so does [Guard.ControlFields].
	ReplayedHeader string

	// PolicyURL is the URI of the page on which the API publishes its policy, such as
	// that of package contract. Responses to requests with a key, and all problems, then
	// carry Link: <…>; rel="describedby", beside the links that they have. A kept
	// response is replayed with the link that it had. By default only the problems about
	// a key have a link, to their type.
	PolicyURL string
}

// ProblemFormat is the form of refusals.
type ProblemFormat struct {
	// Base is the URI to which a problem's code is appended to form its type. The default
	// is this project's documentation.
	Base string

	// Write makes the response to a problem. Nil writes application/problem+json. It gets
	// the request for the values of a company's own error format, such as the language and
	// the request ID, and the context, whose values are those of the request or of the
	// handler. It must not read the body, and must not put anything into the answer that a
	// client could not see otherwise. It is called from many goroutines.
	Write func(ctx context.Context, r *Request, p Problem) Response
}
