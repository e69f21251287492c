package protocol

import (
	"context"
	"fmt"
	"slices"

	reprise "github.com/reprise-go/reprise/core"
)

// Payload returns the form in which the record of the handler with this context keeps
// r, for a handler that completes its operation itself, in a transaction of its own.
// The fields that the guard never keeps are left out, as they are of a response that
// the handler writes. The error wraps [reprise.ErrInvalid]: outside of a protected
// handler, and for a response that is not kept whole.
func Payload(ctx context.Context, r Response) ([]byte, error) {
	x := exchangeOf(ctx)
	if x == nil || x.attempt.Unprotected() {
		return nil, fmt.Errorf("%w: Payload outside of a protected handler", reprise.ErrInvalid)
	}
	var fields []Field
	for f := range r.Header.All() {
		if f.Remove {
			fields = append(fields, f)
			continue
		}
		fields = appendGrouped(fields, f.Name, CleanValue(f.Value))
	}
	kept, _ := x.guard.fields.filter(nil, fields)
	if added := x.guard.announce.fields(fields, true); fitsStored(slices.Concat(kept, added)) {
		kept = append(kept, added...)
	}
	switch {
	case r.Status < 200 || r.Status > 999:
		return nil, fmt.Errorf("%w: Payload of status %d, want 200 to 999", reprise.ErrInvalid, r.Status)
	case r.Trailer.Len() > 0:
		return nil, fmt.Errorf("%w: Payload of a response with trailers", reprise.ErrInvalid)
	case r.Stream != nil:
		return nil, fmt.Errorf("%w: Payload of a response with a stream", reprise.ErrInvalid)
	case len(r.Body) > x.guard.cfg.MaxResponseBody:
		return nil, fmt.Errorf("%w: Payload of %d bytes, more than Config.MaxResponseBody", reprise.ErrInvalid, len(r.Body))
	case !fitsStored(kept):
		return nil, fmt.Errorf("%w: Payload of more or larger header fields than are kept", reprise.ErrInvalid)
	}
	s := stored{status: r.Status, fields: kept, body: r.Body, annotation: x.guard.annotation(ctx)}
	encoded := appendStored(make([]byte, 0, s.size()), &s)
	seal := &x.guard.cfg.Seal
	if !seal.On {
		return encoded, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.scratch == nil {
		return nil, fmt.Errorf("%w: Payload after the handler returned", reprise.ErrInvalid)
	}
	return seal.appendSealed(nil, encoded, &s, x.sealedFor()), nil
}
