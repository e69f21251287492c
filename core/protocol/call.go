package protocol

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
)

// Call is the protocol's view of a unary call of gRPC or Connect, independent of a
// library. It corresponds to the [Request] of HTTP.
//
// A call is the same call over all protocols: its fingerprint has the procedure and the
// message, and neither the codec nor the compression. A retry in JSON gets the replay of
// a call in binary form.
type Call struct {
	Procedure string                                    // "/package.Service/Method"
	Metadata  interface{ Values(name string) []string } // of the request, every line of it: see Request.Header
	Host      string                                    // the authority that the client called, for Config.Fingerprint.Headers

	// Message returns the request message in an encoding that is the same for the same
	// message. It is called at most once, and not for a call without a key. An error
	// refuses the call with internal-error.
	Message func() ([]byte, error)

	// Field returns the value of a field of the request message, by its name in the schema
	// or in JSON, for [KeyField]: nil if the message has no such field or it is not set, and
	// a function like Field for a message. Values other than strings and messages are
	// returned as they are, and refuse the call with key-invalid. So does a nil Field.
	Field func(name string) any

	// Safe says that the procedure is declared to have no side effects, or that the call
	// came as a GET. It passes through, as a GET of HTTP does.
	Safe bool
}

// CallAdmission is the decision about a call: exactly one of three.
type CallAdmission struct {
	Pass     bool       // run the handler, untouched
	Exchange *Exchange  // not nil: run the handler with its context, and end it with FinishCall
	Result   CallResult // otherwise: answer with it; the handler does not run
}

// CallResult is the result of a unary call for its client: a message or an error, and
// metadata.
type CallResult struct {
	Code    uint32   // of gRPC: 0 is OK
	Message string   // of an error
	Details []Detail // of an error

	// Type is the full name of the response message, and Body is the message in the binary
	// encoding of protocol buffers. An error has neither.
	Type string
	Body []byte

	// Header and Trailer are the metadata. A value whose name ends in -bin is in base64, as
	// it is sent.
	Header, Trailer Header
}

// CallReply is the reply to send after a handler ran.
type CallReply struct {
	Replace bool       // send Result instead of the handler's own
	Result  CallResult // with Replace
	Mark    Field      // without Replace: metadata to set on the header of the handler's own; none if its name is empty
}

// AdmitCall decides about one unary call, as [Guard.Admit] does about a request. Skip,
// Fingerprint and Describe see it as a POST to the path of the procedure, without
// a Content-Type; a safe one is a GET. So are health checks, reflection and channelz,
// which have to work where a key is required.
func (g *Guard) AdmitCall(ctx context.Context, c Call, scope func() (string, error)) CallAdmission {
	admission := g.Admit(ctx, c.request(), scope)
	if admission.Pass || admission.Exchange != nil {
		return CallAdmission{Pass: admission.Pass, Exchange: admission.Exchange}
	}
	return CallAdmission{Result: g.result(ctx, admission.Response)}
}

// errStream is the error that the observer gets for a streaming call with a key.
var errStream = errors.New("reprise: a streaming call came with a key; only unary calls are protected")

// PassStream informs a client and the observer that a streaming call runs unprotected,
// although its metadata has a key. It returns the field to add to the header of the
// response; its name is empty if there is no key, or if a unary call would pass through
// untouched: one of a safe procedure, one that Config.Skip leaves out, and every call if
// Config.Methods has no POST. A streaming call is never refused, not even where a key is
// required, and its messages are not asked for one.
func (g *Guard) PassStream(ctx context.Context, c Call) Field {
	req := c.request()
	concerned, err := g.concerns(ctx, &req)
	if err != nil {
		g.report(ctx, reprise.Event{Kind: EventPanic, Err: withoutKey(err, "")})
		return Field{}
	}
	if _, lines := g.cfg.Key.lines(&req); !concerned || lines == 0 {
		return Field{}
	}
	g.report(ctx, reprise.Event{Outcome: reprise.Unprotected, Err: errStream})
	return markUnprotected
}

// FinishCall is [Exchange.Finish] for a call whose handler returned. The response is kept
// or the claim released by the HTTP status that the code stands for.
func (x *Exchange) FinishCall(r CallResult) CallReply {
	response := r.Response()
	x.scratch.committed = appendCallFields(x.scratch.committed[:0], response.Header, false)
	x.scratch.trailers = appendCallFields(x.scratch.trailers[:0], response.Trailer, true)
	return x.callReply(x.Finish(Captured{Status: response.Status, Body: response.Body}))
}

// AbandonCall finishes the exchange of a call that has no result: its handler panicked or
// ended its goroutine, or, with cut, returned a message that cannot be encoded.
func (x *Exchange) AbandonCall(cut bool) CallReply {
	return x.callReply(x.Finish(Captured{Status: 200, Panicked: !cut, Cut: cut}))
}

func (x *Exchange) callReply(reply Reply) CallReply {
	if !reply.Replace {
		return CallReply{Mark: reply.Mark}
	}
	return CallReply{Replace: true, Result: x.guard.result(x.Context(), reply.Response)}
}

// request returns the request that the policy sees.
func (c *Call) request() Request {
	method := "POST"
	if c.Safe || isDiagnostic(c.Procedure) {
		method = "GET"
	}
	return Request{Method: method, Path: c.Procedure, Host: c.Host, Header: callMetadata{c.Metadata}, message: c.Message, field: c.Field}
}

// inMessage returns the string in the field of a call's message that a pointer names.
func (r *Request) inMessage(p canonical.Pointer) (value string, found bool, err error) {
	if r.field == nil {
		return "", false, errKeyOwn
	}
	at := any(r.field)
	for _, name := range p {
		field, ok := at.(func(string) any)
		if !ok {
			return "", false, errKeyObject
		}
		if at = field(name); at == nil {
			return "", false, nil
		}
	}
	value, ok := at.(string)
	if !ok {
		return "", false, errKeyText
	}
	return value, true, nil
}

// isDiagnostic reports whether a procedure is one of the services with which gRPC looks
// at a server. They only read, and no descriptor says so.
func isDiagnostic(procedure string) bool {
	for _, service := range [...]string{"/grpc.health.", "/grpc.reflection.", "/grpc.channelz."} {
		if strings.HasPrefix(procedure, service) {
			return true
		}
	}
	return false
}

// callMetadata is the metadata of a call without the fields about how the message was
// sent.
type callMetadata struct {
	all interface{ Values(name string) []string }
}

// Values returns the value of every line called name.
func (m callMetadata) Values(name string) []string {
	if m.all == nil || strings.EqualFold(name, "Content-Type") || strings.EqualFold(name, "Content-Encoding") {
		return nil
	}
	return m.all.Values(name)
}

// appendCallFields appends the metadata of a handler. Fields of the protocol that carries
// the call, or of a single call, are left out.
func appendCallFields(dst []Field, metadata Header, trailer bool) []Field {
	for f := range metadata.All() {
		own := !trailer && (f.Name == fieldType || f.Name == fieldCode)
		if own || !f.Remove && !carriesCalls(f.Name) {
			dst = appendGrouped(dst, f.Name, cleanValue(f.Value))
		}
	}
	return dst
}

// carriesCalls reports whether metadata called name belongs to one call or to the
// protocol that carries it. Names that begin with grpc- are reserved for gRPC.
func carriesCalls(name string) bool {
	var stack [64]byte
	lower := string(syntax.AppendLower(stack[:0], name))
	switch lower {
	case "content-type", "content-encoding", "accept-encoding", "endpoint-load-metrics", "endpoint-load-metrics-bin":
		return true
	default:
		return strings.HasPrefix(lower, "grpc-") || strings.HasPrefix(lower, "connect-")
	}
}

// The fields of a kept call that are not its metadata. Their spelling is that of the
// records.
const (
	fieldType = "Content-Type"
	fieldCode = "Grpc-Status" // absent where the call succeeded
)

// The media type of a kept message has the name of the message as its parameter.
const (
	messageMedia = "application/protobuf"
	messageStart = messageMedia + `; messageType="`
	statusType   = "google.rpc.Status"
)

// Response returns the form in which a record keeps the result of a call, for
// the Resolve of package operate: the HTTP status that the code stands for, the
// metadata, the message, and for an error a google.rpc.Status in its place. A code that
// gRPC does not have is UNKNOWN.
func (r CallResult) Response() Response {
	code, body, name := grpcCode(r.Code), r.Body, r.Type
	if code != 0 {
		name, body = statusType, appendStatus(nil, code, r.Message, r.Details)
	}
	own := []Field{{Name: fieldType, Value: messageStart + name + `"`}}
	if code != 0 {
		own = append(own, Field{Name: fieldCode, Value: strconv.Itoa(int(code))})
	}
	header := make([]Field, 0, r.Header.Len()+len(own))
	for f := range r.Header.All() {
		if !carriesCalls(f.Name) && !record.IsControlField(f.Name) {
			header = append(header, f)
		}
	}
	return Response{Status: grpcStatuses[code], Header: Header{fields: append(header, own...)}, Body: body, Trailer: r.Trailer}
}

// result returns a call's result for a response of the middleware: a replay or a refusal.
func (g *Guard) result(ctx context.Context, r Response) CallResult {
	if r.problem != nil {
		return problemResult(r.problem)
	}
	result, problem := callResult(r)
	if problem == CodeRecordCorrupt {
		g.report(ctx, reprise.Event{Kind: reprise.EventStoreError, Err: errStoredCall})
	}
	if problem != "" {
		p := g.problems.of(problem)
		return problemResult(&p)
	}
	return result
}

var errStoredCall = record.Corrupt("is not that of a call")

// callResult reads a kept response, or returns the code of the problem with it. A
// response that no call made, such as an operator's for a lapsed record, has the code of
// its status; as a success it has no message.
func callResult(r Response) (CallResult, Code) {
	result := CallResult{Header: callMetadataOf(r.Header), Trailer: callMetadataOf(r.Trailer)}
	media, _ := r.Header.Get(fieldType)
	name, typed := strings.CutPrefix(media, messageStart)
	name, quoted := strings.CutSuffix(name, `"`)
	code, failed := r.Header.Get(fieldCode)
	switch {
	case failed && name == statusType:
		var ok bool
		result.Code, result.Message, result.Details, ok = parseStatus(r.Body)
		if !ok || result.Code == 0 || grpcCode(result.Code) != result.Code || strconv.Itoa(int(result.Code)) != code {
			return CallResult{}, CodeRecordCorrupt
		}
	case r.Status < 200 || r.Status > 299:
		result.Code = codeOfStatus(r.Status)
		result.Message = "The call ended with the HTTP status " + strconv.Itoa(r.Status) + "."
	case typed && quoted:
		result.Type, result.Body = name, r.Body
	case media == messageMedia:
		result.Body = r.Body
	default:
		return CallResult{}, CodeResultUnavailable
	}
	return result, ""
}

// callMetadataOf returns the metadata among the fields of a response.
func callMetadataOf(h Header) Header {
	fields := make([]Field, 0, h.Len())
	for f := range h.All() {
		if !f.Remove && !carriesCalls(f.Name) {
			fields = append(fields, f)
		}
	}
	return Header{fields: fields}
}

// errorDomain is the domain of the google.rpc.ErrorInfo in every refusal of a call. Its
// reason is the code in upper case with underscores, such as KEY_REUSED.
const errorDomain = "github.com/reprise-go/reprise"

// problemResult returns a problem as the error of a call: a status code, a
// google.rpc.ErrorInfo, and where a retry makes sense a google.rpc.RetryInfo and the
// metadata that tells gRPC's own retries how long to wait.
func problemResult(p *Problem) CallResult {
	reason := strings.ToUpper(strings.ReplaceAll(string(p.Code), "-", "_")) // [A-Z][A-Z0-9_]+[A-Z0-9]
	r := CallResult{Code: p.GRPC, Message: p.Detail, Details: []Detail{errorInfo(reason, errorDomain, p.Type)}}
	if p.RetryAfter > 0 {
		r.Details = append(r.Details, retryInfo(p.RetryAfter))
		wait := strconv.FormatInt(min(p.RetryAfter.Milliseconds(), math.MaxInt32), 10)
		r.Header = NewHeader(retryAfterField(p.RetryAfter))
		r.Trailer = NewHeader(Field{Name: "grpc-retry-pushback-ms", Value: wait})
	}
	return r
}
