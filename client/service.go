package repriseclient

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Service is how a service spells the header, and which responses it wants retried. The
// zero value is that of a service that uses Reprise or follows the draft
// (draft-ietf-httpapi-idempotency-key-header); [Stripe] and [Adyen] return the values for
// two public services. A Service is plain data that a caller may print, copy and change.
type Service struct {
	// Header is the name of the field that carries the key. The default is
	// "Idempotency-Key".
	Header string

	// Bare sends the key as it is, without the double quotes of a structured-field string
	// (RFC 9651).
	Bare bool

	// MaxKey is the length of the longest key, in bytes. The default is 255.
	MaxKey int

	// Replayed is the name of the response field that marks a replay with the value true.
	// The default is "Idempotent-Replayed"; "-" says that the service has none.
	Replayed string

	// Scope is the scope of this client's keys at a service that uses Reprise. With it the
	// KeyHash of errors and events is the beginning of the record's ID, which the program's
	// commands take (reprise show 8101b459acd8). It is not sent. The default is none, for a
	// scope that this client does not know; a service without scopes has [SharedScope].
	Scope string

	// Endpoint is the Endpoint of the service's policy, for the same purpose.
	Endpoint string

	// RetryHeader is the name of a response field whose value, true or false, says whether
	// to retry. It has precedence over RetryStatuses and problem documents. The default is
	// none.
	RetryHeader string

	// RetryStatuses lists the statuses that are retried if neither RetryHeader nor a problem
	// document decides: of 408, 409, 425, 429 and those from 500 on. The default is 429,
	// 502, 503 and 504, and 409 and 425 with a Retry-After, by which services that follow
	// the draft say that the first request still runs; empty but not nil is none.
	RetryStatuses []int
}

// SharedScope is the Scope of a service whose clients share one key space (Unscoped).
const SharedScope = "\x00unscoped"

// The defaults of a [Service].
const (
	defaultHeader   = "Idempotency-Key"
	defaultReplayed = "Idempotent-Replayed"
	defaultMaxKey   = 255
)

// Stripe returns how Stripe's API spells the header, from its public documentation
// (docs.stripe.com/api/idempotent_requests and docs.stripe.com/error-low-level): a bare
// key of at most 255 characters, replays marked with Idempotent-Replayed, and
// Stripe-Should-Retry where Stripe knows whether a retry helps. Without that field 409
// (another request with the key is running), 429 and 502 to 504 are retried, and 500 is
// not, because Stripe records and replays it.
func Stripe() Service {
	return Service{
		Header:        defaultHeader,
		Bare:          true,
		MaxKey:        255,
		Replayed:      defaultReplayed,
		RetryHeader:   "Stripe-Should-Retry",
		RetryStatuses: []int{409, 429, 502, 503, 504},
	}
}

// Adyen returns how Adyen's API spells the header, from its public documentation
// (docs.adyen.com/development-resources/api-idempotency): a bare key of at most 64
// characters, a UUID by recommendation. Adyen sends Transient-Error: true where a request
// may be retried with its key, and asks not to retry any response without it, so no
// status alone causes a retry. Replays have no mark.
func Adyen() Service {
	return Service{
		Header:        "idempotency-key",
		Bare:          true,
		MaxKey:        64,
		Replayed:      "-",
		RetryHeader:   "Transient-Error",
		RetryStatuses: []int{},
	}
}

// complete returns s with its defaults, or the error that names its invalid field.
func (s Service) complete() (Service, error) {
	if s.Header == "" {
		s.Header = defaultHeader
	}
	if s.MaxKey == 0 {
		s.MaxKey = defaultMaxKey
	}
	if s.Replayed == "" {
		s.Replayed = defaultReplayed
	}
	if s.RetryStatuses == nil {
		s.RetryStatuses = []int{429, 502, 503, 504}
	}
	s.RetryStatuses = slices.Clone(s.RetryStatuses)
	for _, name := range []struct{ field, value string }{
		{"Header", s.Header}, {"Replayed", s.Replayed}, {"RetryHeader", s.RetryHeader},
	} {
		if name.value != "" && !isToken(name.value) {
			return s, fmt.Errorf("repriseclient: Service.%s is not the name of a header field: %q", name.field, name.value)
		}
	}
	if strings.EqualFold(s.RetryHeader, s.Replayed) {
		return s, fmt.Errorf("repriseclient: Service.RetryHeader and Service.Replayed are both %q: true would mean to retry, and that no retry helps", s.RetryHeader)
	}
	if s.MaxKey < minMaxKey {
		return s, fmt.Errorf("repriseclient: Service.MaxKey is %d, want at least %d, the length of a UUID", s.MaxKey, minMaxKey)
	}
	for _, status := range s.RetryStatuses {
		if !mayRetry(status) {
			return s, fmt.Errorf("repriseclient: Service.RetryStatuses has %d, which no retry can change", status)
		}
	}
	return s, nil
}

// minMaxKey leaves room for a UUID.
const minMaxKey = 36

// mayRetry reports whether a status may be about this attempt and not the operation.
func mayRetry(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500 && status < 600
}

// isToken reports whether s is a token of RFC 9110, as the names of fields are.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case slices.Contains([]byte("!#$%&'*+-.^_`|~"), c):
		default:
			return false
		}
	}
	return s != ""
}
