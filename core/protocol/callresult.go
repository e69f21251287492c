package protocol

import (
	"context"
	"math"
	"strconv"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
)

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
	r := CallResult{
		Code: p.GRPC, Message: p.Detail,
		Details: []Detail{errorInfo(reasonOf(p.Code), errorDomain, p.Type)},
	}
	if p.RetryAfter > 0 {
		r.Details = append(r.Details, retryInfo(p.RetryAfter))
		wait := strconv.FormatInt(min(p.RetryAfter.Milliseconds(), math.MaxInt32), 10)
		r.Header = NewHeader(retryAfterField(p.RetryAfter))
		r.Trailer = NewHeader(Field{Name: "grpc-retry-pushback-ms", Value: wait})
	}
	return r
}

// reasonOf returns the reason of an ErrorInfo, whose form is [A-Z][A-Z0-9_]+[A-Z0-9].
func reasonOf(code Code) string {
	return strings.ToUpper(strings.ReplaceAll(string(code), "-", "_"))
}
