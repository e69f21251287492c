package protocol

import (
	"context"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
)

var summaryBody = []byte(`{"status":"completed"}`)

// replayPayload returns the response that another attempt recorded for the operation.
func (x *Exchange) replayPayload(payload []byte) Response {
	g, ctx := x.guard, x.Context()
	s, err := g.decode(payload, x.sealedFor())
	if err != nil {
		g.report(ctx, reprise.Event{Kind: reprise.EventStoreError, Err: err})
		return g.problem(ctx, x.request, CodeRecordCorrupt)
	}
	return g.replay(context.WithoutCancel(ctx), x.request, &s, x.version) // the attempt, and its context, have ended
}

// replay returns the response from a record (R12 to R19, R35) to a request of a version.
func (g *Guard) replay(ctx context.Context, req *Request, s *stored, v version) Response {
	switch g.formOf(req, s) {
	case formUnavailable:
		return g.problem(ctx, req, CodeResultUnavailable)
	case formSummary:
		return g.summary(s)
	case formBlob:
		return g.replayBlob(ctx, req, s)
	default:
		r := Response{Status: s.Status, Header: Header{fields: markReplayed, stored: s.Header}, Body: s.Body}
		if v.sendsTrailers(s.Status) {
			r.Trailer = Header{stored: s.Trailer}
		}
		return r
	}
}

// replayForm is the form in which a stored response is replayed.
type replayForm uint8

const (
	formWhole       replayForm = iota
	formUnavailable            // 409 result-unavailable instead
	formSummary                // with the substitute for its body
	formBlob                   // with its body from the blob store
)

// formOf is the table of the forms. A nil req is that of HTTP.
func (g *Guard) formOf(req *Request, s *stored) replayForm {
	switch {
	case s.Flags&record.Cut != 0, s.Flags&(record.Offloaded|record.Omitted) != 0 && req.isCall(),
		s.Flags&record.Omitted != 0 && g.cfg.Oversize == Unavailable:
		return formUnavailable
	case s.Flags&record.Omitted != 0:
		return formSummary
	case s.Flags&record.Offloaded != 0:
		return formBlob
	default:
		return formWhole
	}
}

// summary returns the substitute for a response whose body was not kept, without the
// fields that described that body.
func (g *Guard) summary(s *stored) Response {
	fields := make([]Field, 0, s.Header.Len()+3)
	for f := range (Header{stored: s.Header}).All() {
		if !describesBody(f.Name) {
			fields = append(fields, f)
		}
	}
	fields = append(fields, markReplayed[0],
		Field{Name: "Content-Type", Value: "application/json"}, markOmitted)
	return Response{Status: s.Status, Header: Header{fields: fields}, Body: summaryBody}
}

// describesBody reports whether a field describes the bytes of a body, so that it would
// be wrong for another body.
func describesBody(name string) bool {
	switch lower := strings.ToLower(name); lower {
	case "etag", "last-modified", "accept-ranges", "digest", "repr-digest", "want-digest":
		return true
	default:
		return strings.HasPrefix(lower, "content-")
	}
}
