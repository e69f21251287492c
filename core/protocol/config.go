package protocol

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// Config is the policy of a [Guard]. The zero value is the documented default in every field.
type Config struct {
	// Header is the name of the field that carries the key, in any case. Default "Idempotency-Key".
	Header string

	// Aliases are other names under which a key is accepted. A request with two of the names is refused.
	Aliases []string

	// KeyMode says which forms of a key are accepted. Default Compat.
	KeyMode KeyMode

	// MaxKeyLength bounds the decoded key, in bytes: 36 to 4,096. Default 255.
	MaxKeyLength int

	// Methods are the methods that are keyed. Default POST and PATCH. GET, HEAD, OPTIONS, TRACE and CONNECT cannot be.
	Methods []string

	// Required refuses a keyed method without a key. By default such a request passes through, unprotected.
	Required bool

	// Endpoint makes the identity of an operation one per endpoint: a stable name of your own, for APIs whose clients use one
	// key for several calls. By default a key that comes back at another endpoint is refused with 422.
	Endpoint string

	// Preset says what becomes of failures and of lapsed attempts. Default [reprise.Recoverable].
	Preset reprise.Preset

	// Retention is how long a response is replayed, from its completion: 1 ms to 10 years. Default the engine's, 24 h.
	Retention time.Duration

	// MaxAttempts refuses to take a lapsed record over when that many attempts were made. Zero is unlimited.
	MaxAttempts int

	// Wait lets a duplicate wait that long for the first request, and then gets its replay. Zero answers 409 at once.
	Wait time.Duration

	// MaxRequestBody bounds the body of a keyed request, in bytes; a larger one is refused with 413. Default 1 MiB.
	MaxRequestBody int

	// MaxResponseBody bounds the body that is kept, in bytes. The client gets a larger one in full, and Oversize says
	// what its retries get. Default 1 MiB; at most 63 MiB.
	MaxResponseBody int

	// Oversize says what retries get where the body was not kept. Default Summary.
	Oversize Oversize

	// Fingerprint digests what a request asks for. Default [DefaultFingerprint].
	Fingerprint Fingerprinter

	// KeepHeaders, where it is not nil, names the response fields that are kept for replays; no others are. By default all are
	// but those that belong to one exchange (R14).
	KeepHeaders []string

	// Outcome may decide by the status of a whole response whether it is kept or released. Default means as the preset
	// says. It is called for every keyed run.
	Outcome func(status int) Disposition

	// FailOpen runs the handler unprotected when the store cannot be reached, instead of answering 503. The response says so in
	// Idempotency-Status: unprotected. An operation may then run twice. It cannot be combined with AtMostOnce.
	FailOpen bool

	// ProblemBase is the URI to which a problem's code is appended to make its type. Default the project's documentation.
	ProblemBase string

	// WriteProblem, where it is not nil, makes the response for a problem. It must not look at requests, and is called from
	// many goroutines.
	WriteProblem func(Problem) Response
}

// Oversize says what a retry gets whose first response was not kept in full.
type Oversize uint8

const (
	// Summary answers with the stored status and fields, the body {"status":"completed"} and Idempotency-Body: omitted.
	Summary Oversize = iota

	// Unavailable answers 409 result-unavailable.
	Unavailable
)

// Disposition is a decision on a response.
type Disposition uint8

// The dispositions.
const (
	Default     Disposition = iota // as the preset says
	KeepOutcome                    // record it and replay it
	ReleaseKey                     // forget the claim: the next request runs
)

const (
	defaultHeader = "Idempotency-Key"
	defaultBody   = 1 << 20
	maxKeptBody   = 63 << 20 // leaves room for the rest of a payload
	maxKeyLength  = 4096
)

var (
	defaultMethods = []string{"POST", "PATCH"}
	neverKeyed     = []string{"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"}
)

// withDefaults fills in the defaults and reports the first field that cannot be, as [reprise.ErrInvalid].
func (c Config) withDefaults() (Config, error) {
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

	for _, n := range append([]string{c.Header}, c.Aliases...) {
		if !validName(n) {
			return c, invalid("Header or Aliases", "%q is no field name", n)
		}
	}
	for i, n := range c.Aliases {
		same := func(other string) bool { return strings.EqualFold(n, other) }
		if same(c.Header) || slices.ContainsFunc(c.Aliases[:i], same) {
			return c, invalid("Aliases", "%s is there twice", n)
		}
	}
	for _, m := range c.Methods {
		if !validName(m) || slices.Contains(neverKeyed, m) {
			return c, invalid("Methods", "%q cannot be keyed", m)
		}
	}
	for _, f := range []struct {
		name              string
		value, least, top int
	}{
		{"KeyMode", int(c.KeyMode), 0, int(Strict)},
		{"MaxKeyLength", c.MaxKeyLength, minKeyLimit, maxKeyLength},
		{"MaxAttempts", c.MaxAttempts, 0, math.MaxInt32},
		{"MaxRequestBody", c.MaxRequestBody, 1, math.MaxInt32},
		{"MaxResponseBody", c.MaxResponseBody, 1, maxKeptBody},
		{"Oversize", int(c.Oversize), 0, int(Unavailable)},
		{"Preset", int(c.Preset), 0, int(reprise.AtMostOnce)},
	} {
		if f.value < f.least || f.value > f.top {
			return c, invalid(f.name, "%d, want %d to %d", f.value, f.least, f.top)
		}
	}
	if !validProblemBase(c.ProblemBase) {
		return c, invalid("ProblemBase", "is no URI")
	}
	if c.Retention != 0 && (c.Retention < reprise.MinDuration || c.Retention > reprise.MaxDuration) {
		return c, invalid("Retention", "%v, want %v to %v", c.Retention, reprise.MinDuration, reprise.MaxDuration)
	}
	if c.Wait < 0 {
		return c, invalid("Wait", "%v is negative", c.Wait)
	}
	if c.FailOpen && c.Preset == reprise.AtMostOnce {
		return c, invalid("FailOpen", "cannot be combined with AtMostOnce, which it would break")
	}
	return c, nil
}

func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%w: Config.%s: %s", reprise.ErrInvalid, field, fmt.Sprintf(format, args...))
}

func orDefault(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}
