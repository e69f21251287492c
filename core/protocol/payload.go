package protocol

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-go/reprise/core/protocol/internal/record"
	"github.com/reprise-go/reprise/core/store"
)

// Payload returns the form in which the record of the handler with this context keeps r,
// for a handler that completes its operation in its own transaction. The fields that the
// guard never keeps are left out, as they are of a response that the handler writes. A
// handler that writes r afterwards is recorded with the same bytes. The error wraps
// [store.ErrInvalid]: outside of a protected handler, and for a response that is not kept
// whole.
func Payload(ctx context.Context, r Response) ([]byte, error) {
	x := exchangeOf(ctx)
	if x == nil || x.attempt.Unprotected() {
		return nil, fmt.Errorf("%w: Payload outside of a protected handler", store.ErrInvalid)
	}
	var fields []Field
	for f := range r.Header.All() {
		if f.Remove {
			fields = append(fields, f)
			continue
		}
		fields = appendGrouped(fields, f.Name, cleanValue(f.Value))
	}
	kept, _ := x.guard.fields.filter(nil, fields)
	if added := x.guard.announce.fields(fields, true, x.ownAt()); record.Fits(slices.Concat(kept, added)) {
		kept = append(kept, added...)
	}
	switch {
	case r.Status < 200 || r.Status > 999:
		return nil, fmt.Errorf("%w: Payload of status %d, want 200 to 999", store.ErrInvalid, r.Status)
	case r.Trailer.Len() > 0:
		return nil, fmt.Errorf("%w: Payload of a response with trailers", store.ErrInvalid)
	case r.Stream != nil:
		return nil, fmt.Errorf("%w: Payload of a response with a stream", store.ErrInvalid)
	case len(r.Body) > x.guard.cfg.Limits.ResponseBody:
		return nil, fmt.Errorf("%w: Payload of %d bytes, more than Config.Limits.ResponseBody", store.ErrInvalid, len(r.Body))
	case !record.Fits(kept):
		return nil, fmt.Errorf("%w: Payload of more or larger header fields than are kept", store.ErrInvalid)
	}
	s := stored{Status: r.Status, Fields: kept, Body: r.Body, Annotation: x.ownAnnotation(ctx)}
	encoded := record.Append(make([]byte, 0, s.Size()), &s)
	seal := &x.guard.cfg.Seal
	if !seal.on() {
		return encoded, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.scratch == nil {
		return nil, fmt.Errorf("%w: Payload after the handler returned", store.ErrInvalid)
	}
	sum := sha256.Sum256(encoded)
	if x.own.sealed == nil || x.own.sum != sum {
		x.own.sum, x.own.sealed = sum, seal.appendSealed(nil, encoded, x.sealedFor())
	}
	return slices.Clone(x.own.sealed), nil
}

// ownPayload is the result of [Payload] for the handler of an exchange. The handler
// completes with it and then writes the same response, for which Finish must make the
// same payload: a store takes another one for the response of another attempt. Without
// this an envelope would differ by its nonce, an expiry by the time in between, and an
// annotation by the handler's context, such as that of a span.
type ownPayload struct {
	at     time.Time // from which the expiry counts; zero: Payload was not called
	note   *string   // the annotation; nil: Payload was not called
	sum    [sha256.Size]byte
	sealed []byte // the envelope of the plaintext with this sum; nil: none
}

// ownAt returns the instant from which the expiry of the payloads of a handler counts.
func (x *Exchange) ownAt() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.own.at.IsZero() {
		x.own.at = time.Now()
	}
	return x.own.at
}

// ownAnnotation returns the annotation of the payloads of a handler with ctx.
func (x *Exchange) ownAnnotation(ctx context.Context) string {
	if note, made := x.annotatedBefore(); made {
		return note
	}
	note := x.guard.annotation(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.own.note == nil {
		x.own.note = &note
	}
	return *x.own.note
}

// annotatedBefore returns the annotation that Payload kept, if it was called.
func (x *Exchange) annotatedBefore() (note string, made bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.own.note == nil {
		return "", false
	}
	return *x.own.note, true
}

// sealedBefore returns the envelope that Payload made of an encoded response, nil if it
// made none.
func (x *Exchange) sealedBefore(encoded []byte) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.own.sealed == nil || x.own.sum != sha256.Sum256(encoded) {
		return nil
	}
	return x.own.sealed
}
