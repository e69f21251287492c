// Package contract generates the contract of an API from the policy of its guard: an
// OpenAPI document of components, the lists that CORS needs, and a page for the people
// who write clients. See docs/reference/contract.md.
package contract

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// Policy is the behaviour of a guard, as a value with every default filled in. It is the
// source of the contract that clients and API teams need:
//
//   - an OpenAPI 3.1 document of components ([Policy.OpenAPIJSON]);
//   - the fields that CORS has to allow and to expose ([Policy.CORS]);
//   - the page on which the API publishes its policy ([Policy.Markdown]), or one from
//     your template, with a Policy as its data.
//
// It has the facts that a guard knows about itself. Change those that you know better
// before you generate: Transactional, Fingerprint, Problems.
type Policy struct {
	Label string // of the configuration; may be empty

	// Keyed requests, and the form of keys.
	Header       string // in which a key is accepted, whatever its source
	Aliases      []string
	Source       string        // where else the key is, as a noun; empty: only in the header
	Param        string        // the query parameter that is the source; else empty
	Field        string        // the JSON pointer to the field of the body that is the source; else empty
	Window       time.Duration // in which equal requests are one operation; 0: keys decide
	BodyKey      bool          // the body is the source, or a part of it
	KeyMode      protocol.KeyMode
	MaxKeyLength int // of the decoded key, in bytes
	Methods      []string
	Required     bool
	Endpoint     string // part of the identity of a key; may be empty
	Selective    bool   // Config.Skip may exempt requests from this policy

	// Requests that count as the same.
	Fingerprint        string   // the end of the sentence "A retry must have …", as Markdown
	FingerprintHeaders []string // request fields that count too
	FingerprintOmit    []string // JSON pointers to the parts of a JSON body that do not count

	// How a request is treated.
	Preset      reprise.Preset
	MaxAttempts int // 0: unlimited
	Wait        time.Duration
	FailOpen    bool

	// Transactional says that effects may commit with the response. A guard sets it where
	// its store can do so, whether the handlers use it or not.
	Transactional bool

	// How long and how much is kept, and of which responses.
	Retention       time.Duration // of the guard, or else of the engine
	Horizon         time.Duration // how much longer a key is remembered; 0: no longer
	MaxRequestBody  int           // in bytes
	MaxResponseBody int           // in bytes
	Oversize        protocol.Oversize
	MaxBlob         int64    // in bytes: the longest body that is offloaded; 0: none is
	KeepHeaders     []string // nil: all but those that belong to a single response
	NotKept         []StatusRange

	// The fields of responses.
	Expires     bool
	Problems    []protocol.Problem // every refusal that the policy can give, with its Retry-After
	OwnProblems bool               // Config.Problems.Write decides their form
}

// StatusRange is a range of statuses, with its ends.
type StatusRange struct{ From, To int }

// String returns the range as text, such as "429" or "500–599".
func (r StatusRange) String() string {
	if r.From == r.To {
		return strconv.Itoa(r.From)
	}
	return fmt.Sprintf("%d–%d", r.From, r.To)
}

// Of returns the policy of a guard. It calls Config.Keep.Decide, if there is one, for
// every status from 200 to 599, without a body.
func Of(g *protocol.Guard) Policy {
	c := g.Config()
	p := Policy{
		Label: c.Label, Header: c.Key.Headers()[0], Aliases: c.Key.Headers()[1:], KeyMode: c.KeyMode, MaxKeyLength: c.Limits.Key,
		Methods: c.Methods, Required: c.Required, Endpoint: c.Endpoint, Selective: c.Skip != nil,
		Fingerprint: describeFingerprint(c.Fingerprint.Func), FingerprintHeaders: c.Fingerprint.Headers, FingerprintOmit: c.Fingerprint.Omit,
		Preset: c.Preset, MaxAttempts: c.MaxAttempts, Wait: c.Wait, FailOpen: c.FailOpen,
		Transactional: c.Transactional,
		Retention:     cmp.Or(c.Retention, g.Engine().Config().Retention), Horizon: c.Horizon, MaxRequestBody: c.Limits.RequestBody,
		MaxResponseBody: c.Limits.ResponseBody, Oversize: c.Oversize, KeepHeaders: c.Keep.Headers, NotKept: notKept(g),
		Expires: c.Expires, Problems: g.Problems(), OwnProblems: c.Problems.Write != nil,
	}
	p.Window, p.Param, p.Field = c.Key.Window(), c.Key.Param(), c.Key.Field()
	if source := c.Key.String(); source != p.Header+" header" {
		p.Source, p.BodyKey = source, p.Param == ""
	}
	if c.Offload.Blobs != nil && !c.Offload.ReadOnly {
		p.MaxBlob = c.Offload.MaxBody
	}
	return p
}

// notKept returns the statuses whose responses are released.
func notKept(g *protocol.Guard) []StatusRange {
	var ranges []StatusRange
	for status := 200; status <= 599; status++ {
		switch last := len(ranges) - 1; {
		case g.Keeps(status):
		case last >= 0 && ranges[last].To == status-1:
			ranges[last].To = status
		default:
			ranges = append(ranges, StatusRange{status, status})
		}
	}
	return ranges
}

// describeFingerprint describes the parts that a retry must share with its first request.
func describeFingerprint(f protocol.Fingerprinter) string {
	same := func(other protocol.Fingerprinter) bool {
		return reflect.ValueOf(f).Pointer() == reflect.ValueOf(other).Pointer()
	}
	switch {
	case f == nil, same(protocol.DefaultFingerprint):
		return "the same method, path, query, media type, content coding and body, byte for byte"
	case same(protocol.CanonicalJSON):
		return "the same method, path, query, media type and content coding, and the same body; JSON bodies may differ in white space and in the order of members"
	case same(protocol.NoFingerprint):
		return "the same key; nothing else of the request is compared"
	default:
		return "the same content, as this API defines it"
	}
}

// KeyPattern returns a regular expression for the value of the header, in the common
// subset of ECMA-262 and Go. Every value that the guard accepts matches it. A value that
// matches is refused only if its parameters are malformed, or if it is too long (see
// KeyMaxLength) where MaxKeyLength is over 1,000, which regular expressions cannot count
// everywhere. The pattern is also that of the query parameter of KeyParam.
func (p Policy) KeyPattern() string {
	if p.Param != "" {
		return p.pattern(protocol.Compat)
	}
	return p.pattern(p.KeyMode)
}

// pattern is KeyPattern for keys of a mode. The mode of a policy is that of its headers,
// and all other sources have Compat.
func (p *Policy) pattern(mode protocol.KeyMode) string {
	count := "+"
	if p.MaxKeyLength <= 1000 {
		count = fmt.Sprintf("{1,%d}", p.MaxKeyLength)
	}
	quoted := `"(?:[ !#-\[\]-~]|\\["\\])` + count + `"(?:;[ -~]*)?`
	if mode == protocol.Strict {
		return "^" + quoted + "$"
	}
	return `^(?:[A-Za-z0-9._~:+/=-]` + count + `|` + quoted + `)$`
}

// maxKeyParameters is how many bytes of parameters a guard reads after a key.
const maxKeyParameters = 1024

// KeyMaxLength returns how long the value of the header may be, in bytes: the longest
// key, quoted, with each character escaped, and parameters.
func (p Policy) KeyMaxLength() int { return 2*p.MaxKeyLength + maxKeyParameters }

// summaryBody is the body of a replay whose body was not kept.
const summaryBody = `{"status":"completed"}`

// responseField is a field of responses, as the contract describes it.
type responseField struct {
	name, component, description string

	values []string // all of them; nil: any
	sample string
}

// markers returns the fields that the protocol sets on the responses to keyed requests.
func (p *Policy) markers() []responseField {
	list := []responseField{{
		name: protocol.FieldReplayed, component: "IdempotentReplayed", values: []string{"true"}, sample: "true",
		description: "The response is a replay: the operation ran before, and did not run for this request.",
	}}
	status := responseField{
		name: protocol.FieldStatus, component: "IdempotencyStatus", values: []string{"unrecorded"}, sample: "unrecorded",
		description: "unrecorded: the operation ran, and its response was not recorded in time; a retry may be told that it is in progress.",
	}
	if p.FailOpen {
		status.values = append(status.values, "unprotected")
		status.description += " unprotected: the operation ran while the store was unavailable; a retry may run it again."
	}
	list = append(list, status)
	if p.Oversize != protocol.Unavailable {
		list = append(list, responseField{
			name: protocol.FieldBody, component: "IdempotencyBody", values: []string{"omitted"}, sample: "omitted",
			description: `The body of the first response was not kept, and this replay has ` + summaryBody + ` in its place.`,
		})
	}
	if p.Expires {
		then := "After it the key is new."
		if p.Horizon > 0 {
			then = "After it retries are refused for as long as the key is remembered."
		}
		list = append(list, responseField{
			name: protocol.FieldExpires, component: "IdempotencyKeyExpires", sample: "@1795305600",
			description: "The response is replayed until this instant, a Date of RFC 9651: an @ and the seconds since 1970 in UTC. " + then +
				" The first response does not have the field if it is a stream.",
		})
	}
	return list
}

// CORS has the fields that a browser needs for requests to another origin. Give them to
// the CORS middleware, which belongs outside of this one (docs/guides/middlewares.md).
type CORS struct {
	AllowHeaders  []string // request fields: Access-Control-Allow-Headers
	ExposeHeaders []string // response fields: Access-Control-Expose-Headers
	AllowMethods  []string // Access-Control-Allow-Methods
}

// CORS returns the permissions that a browser needs for this policy, besides those that
// the API needs anyway.
func (p Policy) CORS() CORS {
	c := CORS{AllowHeaders: append([]string{p.Header}, p.Aliases...), AllowMethods: slices.Clone(p.Methods)}
	for _, f := range p.markers() {
		c.ExposeHeaders = append(c.ExposeHeaders, f.name)
	}
	c.ExposeHeaders = append(c.ExposeHeaders, "Retry-After")
	return c
}

// joined lists words for a sentence: "a, b and c".
func joined(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// span returns a duration as a person says it.
func span(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		n := d / unit.length
		switch {
		case d%unit.length != 0 || n == 0:
		case n == 1 && unit.name == "day":
			return "24 hours"
		case n == 1:
			return "1 " + unit.name
		default:
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return d.String()
}

// size returns a number of bytes as a person says it.
func size[T int | int64](n T) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
