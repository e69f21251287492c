package adaptertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Options are the options that a case requires of its server.
type Options struct {
	Store       store.Store                                // opened by the fixture, possibly wrapped by the case
	Engine      reprise.Config                             // of the one engine over Store
	Guard       protocol.Config                            // of every guard
	Outer       bool                                       // a layer outside of the middleware sets fields and, where it can, a status
	OuterLimit  int                                        // a layer outside of the middleware bounds the body to that many bytes; 0: none does
	OuterBody   OuterBody                                  // what a layer outside of the middleware does with the body; empty: there is none
	PerEndpoint bool                                       // a guard for each method and escaped path, named after them
	Inner       InnerGuard                                 // of a second middleware, inside of the first; nil: there is none
	Effect      func(ctx context.Context, op string) error // runs the effect of a program; nil: none
}

// OuterBody is what a layer outside of the middleware does with a request's body.
type OuterBody string

// What a layer outside does with the body. It puts nothing back.
const (
	Drains  OuterBody = "drain" // reads all of it
	Binds   OuterBody = "bind"  // binds it as layers of the framework do; net/http has forms only
	Decodes OuterBody = "json"  // decodes one JSON value, and leaves what the decoder has not read
)

// InnerGuard returns the guard of the middleware that stands inside of outer's.
type InnerGuard func(outer *protocol.Guard) (*protocol.Guard, error)

// The header fields of requests to the test server and of its responses.
const (
	ProgramHeader = "X-Test-Program" // a Program as JSON; not part of the fingerprint
	TenantHeader  = "X-Test-Tenant"  // the scope; DefaultTenant without it, a scope error when empty, and one that wraps store.ErrUnavailable for AwayTenant
	ExecHeader    = "X-Exec"         // of a response: n, if it was the n-th run of its operation in the process

	DefaultTenant = "public"
	AwayTenant    = "away"
)

// The response of a handler without a program, besides its ExecHeader. Benchmarks measure
// it.
const (
	DefaultStatus      = 201
	DefaultContentType = "application/json"
	DefaultBody        = `{"id":"ord_00000000000000000001","status":"created","currency":"EUR","amount":1999,"customer":"cus_000000000000000000000001",` +
		`"items":[{"sku":"sku_0001","quantity":1,"price":999},{"sku":"sku_0002","quantity":2,"price":500}],"created":"2026-01-01T00:00:00Z"}`
)

// Program is the behaviour of a handler of the test server; a request carries it as
// [ProgramHeader]. The zero value responds with the framework's default status and no
// body. A handler follows it in this order: effect, informational responses, delay,
// decisions, fields, body, chunks, trailers.
type Program struct {
	DelayMS       int       `json:"delay_ms,omitempty"`      // how long the handler works
	Status        int       `json:"status,omitempty"`        // 200 to 999; 0: none, so that the framework's default applies
	Headers       []Pair    `json:"headers,omitempty"`       // field lines that it adds
	Remove        []string  `json:"remove,omitempty"`        // fields of outer layers that it removes, before it adds its own
	HeadersAfter  []Pair    `json:"headers_after,omitempty"` // field lines that it adds after the first byte
	Body          string    `json:"body,omitempty"`
	BodyBase64    []byte    `json:"body_base64,omitempty"`   // the body, if it is not UTF-8
	BodySize      int       `json:"body_size,omitempty"`     // the body is PatternBody of this size
	Chunks        []Chunk   `json:"chunks,omitempty"`        // follow the body, each flushed
	Write         WriteMode `json:"write,omitempty"`         // how the bytes are written
	Informational []Interim `json:"informational,omitempty"` // 1xx responses before the delay
	Trailers      []Pair    `json:"trailers,omitempty"`
	Behaviour     Behaviour `json:"behaviour,omitempty"`   // how it ends
	Effect        bool      `json:"effect,omitempty"`      // Options.Effect
	IgnoreCtx     bool      `json:"ignore_ctx,omitempty"`  // goes on when its context is cancelled, instead of responding 500
	Echo          bool      `json:"echo,omitempty"`        // the body is an Echo as JSON, even if the context was cancelled
	Report        bool      `json:"report,omitempty"`      // an error is added to the framework's list, where it keeps one
	StatusOnly    bool      `json:"status_only,omitempty"` // set the status in the framework's way, and write no body
	Keep          bool      `json:"keep,omitempty"`        // protocol.Keep
	Release       bool      `json:"release,omitempty"`     // protocol.Release
	NoBody        bool      `json:"no_body,omitempty"`     // protocol.OmitBody
	Unknown       string    `json:"unknown,omitempty"`     // protocol.Unknown, with this reason
}

// Pair is a name and a value.
type Pair [2]string

// Chunk is a part of a body that is flushed.
type Chunk struct {
	DelayMS int    `json:"delay_ms,omitempty"` // before it is written
	Body    string `json:"body"`
}

// Interim is a 1xx response.
type Interim struct {
	Status  int    `json:"status"` // 100 to 199, without 101
	Headers []Pair `json:"headers,omitempty"`
}

// WriteMode is how a handler writes bytes.
type WriteMode string

// The ways to write. The zero value is WriteBytes.
const (
	WriteBytes  WriteMode = "write"  // as bytes
	WriteString WriteMode = "string" // as a string, if the framework has a method for it
	WriteCopy   WriteMode = "copy"   // by io.Copy from a reader that is not a WriterTo
)

// Behaviour is how a handler ends.
type Behaviour string

// The behaviours. The zero value is Returns.
const (
	Returns Behaviour = "normal"
	Panics  Behaviour = "panic"  // after half of its output
	Aborts  Behaviour = "abort"  // drops the connection after half of its output
	Fails   Behaviour = "error"  // returns the framework's own error value, with the program's status or 500
	Hijacks Behaviour = "hijack" // takes the connection, writes a complete 200 response, and closes it
)

// Echo is the body of the response to a program with echo.
type Echo struct {
	Method       string `json:"method"`
	RawPath      string `json:"raw_path"`      // escaped, as sent
	RawQuery     string `json:"raw_query"`     // as sent, without the question mark
	BodySHA256   string `json:"body_sha256"`   // of the body that the handler read, in hexadecimal
	BodyLength   int    `json:"body_length"`   // in bytes
	BodyError    string `json:"body_error"`    // empty if the body was read to its end
	Attempt      int    `json:"attempt"`       // 0 outside of an attempt
	Fence        uint64 `json:"fence"`         // likewise
	ContextCause string `json:"context_cause"` // of the handler's context after the delay; empty: not cancelled
}

// ParseProgram parses the value of a [ProgramHeader]. Unknown fields are errors. Where
// fields contradict each other, their order in the handler decides.
func ParseProgram(header string) (Program, error) {
	var p Program
	d := json.NewDecoder(strings.NewReader(header))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Program{}, fmt.Errorf("adaptertest: program: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Program{}, errors.New("adaptertest: program: more than one JSON value")
	}
	return p, nil
}

// Header returns the program as the value of a [ProgramHeader], in US-ASCII without
// control bytes. Use BodyBase64 for strings that are not valid UTF-8.
func (p Program) Header() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // every field has a JSON form
	}
	var b strings.Builder
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r < 0x7f:
			b.WriteByte(byte(r)) //nolint:gosec // below 0x7f
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		}
		data = data[n:]
	}
	return b.String()
}

// Content returns the body, without the chunks.
func (p Program) Content() []byte {
	switch {
	case p.BodySize > 0:
		return PatternBody(p.BodySize)
	case len(p.BodyBase64) > 0:
		return p.BodyBase64
	default:
		return []byte(p.Body)
	}
}

// PatternBody returns n bytes, of which the i-th is the low byte of i XOR i/256. Each
// aligned block of 256 bytes has every byte value once.
func PatternBody(n int) []byte {
	body := make([]byte, n)
	for i := range body {
		body[i] = byte(i ^ i>>8) //nolint:gosec // the low byte is what is wanted
	}
	return body
}
