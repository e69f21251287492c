package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/protocol/internal/spool"
	"github.com/reprise-go/reprise/core/store"
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

// replayBlob returns a stored response whose body is a blob, or the problem with it.
func (g *Guard) replayBlob(ctx context.Context, req *Request, s *stored) Response {
	body, err := g.fetchBlob(ctx, s.Blob)
	if err == nil {
		return Response{Status: s.Status, Header: Header{fields: markReplayed, stored: s.Header}, Stream: body.Body(), Length: s.Blob.Length()}
	}
	err = fmt.Errorf("the body of a response is not replayed: %w", err)
	var damaged record.DamagedBlob
	if errors.Is(err, ErrNoBlob) || errors.As(err, &damaged) {
		g.counts.blobsLost.Add(1)
		g.reportBlob(ctx, store.ID{}, err)
		return g.problem(ctx, req, CodeResultUnavailable)
	}
	if ctx.Err() == nil { // the client waits for the response
		g.counts.blobsUnread.Add(1)
		g.reportBlob(ctx, store.ID{}, err)
	}
	return g.write(ctx, req, g.problems.ofBlob())
}

var errNoBlobs = fmt.Errorf("%w: the record needs Config.Offload.Blobs", store.ErrMisconfigured)

// fetchBlob reads a blob into a spool and checks it, so that its digest is known before
// the first byte leaves. The caller closes the spool.
func (g *Guard) fetchBlob(ctx context.Context, ref record.Blob) (_ *spool.Spool, err error) {
	if g.cfg.Offload.Blobs == nil {
		return nil, errNoBlobs
	}
	s, err := g.replays.New(ref.Size)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Offload.Timeout)
	defer cancel()
	if err := g.readBlob(ctx, ref, s); err != nil {
		return nil, err
	}
	got, err := s.Ref()
	switch {
	case err != nil:
		return nil, err
	case got.Size != ref.Size:
		return nil, record.DamagedBlob(fmt.Sprintf("has %d bytes, want %d", got.Size, ref.Size))
	case got.SHA256 != ref.SHA256:
		return nil, record.DamagedBlob("has other bytes than were written")
	}
	s.DecryptWith(ref.Key)
	return s, nil
}

// readBlob reads a blob into a spool, as far as it goes.
func (g *Guard) readBlob(ctx context.Context, ref record.Blob, s *spool.Spool) (err error) {
	defer recovered("Config.Offload.Blobs.Open", &err)
	r, err := g.cfg.Offload.Blobs.Open(ctx, ref.Name())
	if err != nil {
		return err
	}
	defer r.Close()
	buf := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(buf)
	_, err = io.CopyBuffer(struct{ io.Writer }{s}, struct{ io.Reader }{readUntil{ctx, r}}, buf[:])
	if errors.Is(err, spool.ErrLimit) {
		return record.DamagedBlob(fmt.Sprintf("has more than %d bytes", ref.Size))
	}
	return err
}

// readUntil fails once its context has ended.
type readUntil struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (r readUntil) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

// Write sends r through a header map and a wire, as net/http and the frameworks
// on it have them. Fields that outer layers set stay, unless r has them too or removes
// them. The length of the body is declared, unless trailers follow it. That of an empty
// one is left to the server, since an outer layer may make a body for responses that have
// none. A Stream is closed.
func (r Response) Write(header map[string][]string, wire Wire) {
	defer r.Close()
	r.write(header, wire)
}

// write is Write without the close.
func (r Response) write(header map[string][]string, wire Wire) {
	length := r.length()
	values := make([]string, 0, r.Header.Len()+1)
	for f := range r.Header.All() {
		switch {
		case f.Suppress:
			header[f.Name] = nil
		case f.Remove:
			delete(header, f.Name)
		case f.Add:
			header[f.Name] = append(header[f.Name], f.Value)
		default:
			values = append(values, f.Value)
			header[f.Name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
	if _, typed := header["Content-Type"]; !typed && length > 0 {
		header["Content-Type"] = nil // the first response had none, so none is guessed (R16)
	}
	bodied := syntax.AllowsBody(r.Status)
	switch {
	case r.Trailer.Len() > 0:
		header["Trailer"] = trailerNames(r.Trailer)
	case bodied && length > 0:
		values = append(values, strconv.FormatInt(length, 10))
		header["Content-Length"] = values[len(values)-1:]
	}
	wire.WriteHeader(r.Status)
	switch { // it does not matter whether the client is still there
	case !bodied:
	case r.Stream != nil:
		_ = copyStream(wire, r.Stream) // less than the declared length ends the connection
	case length > 0:
		_, _ = wire.Write(r.Body)
	}
	for f := range r.Trailer.All() {
		name := trailerPrefix + f.Name // so that a layer which takes the header late does not send it as a field
		if !f.Add {
			delete(header, name)
			delete(header, f.Name) // whose values net/http would add
		}
		header[name] = append(header[name], f.Value)
	}
}

// length returns how long the body is.
func (r Response) length() int64 {
	if r.Stream != nil {
		return r.Length
	}
	return int64(len(r.Body))
}

// copyStream writes a stream to the wire in parts.
func copyStream(wire Wire, stream io.Reader) error {
	buf := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(buf)
	_, err := io.CopyBuffer(struct{ io.Writer }{wire}, struct{ io.Reader }{stream}, buf[:])
	return err
}

const copyBuffer = 32 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// trailerNames returns the value of the Trailer field that announces trailers.
func trailerNames(trailers Header) []string {
	var names []string
	for f := range trailers.All() {
		if !f.Add {
			names = append(names, f.Name)
		}
	}
	return []string{strings.Join(names, ", ")}
}
