package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/protocol/internal/spool"
	"github.com/reprise-go/reprise/core/store"
)

// This file moves bodies between responses and the blob store (R35). A first response
// goes through a spool while it streams, and from there to the store before the record is
// completed. A replay comes back through another one, so that its digest is known before
// the first byte leaves.

// startSpool begins to spool a body that has outgrown its limit in memory, if the policy
// offloads it. All of the body follows by spoolMore.
func (x *Exchange) startSpool() {
	switch {
	case !x.guard.offloads, x.attempt.Unprotected(), x.request.isCall():
		return
	case x.omits() && !x.Buffered(): // one that is held back has to be somewhere
		return
	}
	var err error
	if x.spool, err = x.guard.spools.New(x.guard.cfg.Offload.MaxBody); err != nil {
		x.blobFailed(err)
		return
	}
	if x.guard.seals {
		x.spool.Encrypt()
	}
}

// room returns a body with room for n more bytes. A body that may outgrow the memory
// grows in few steps, so that it leaves little to collect.
func (g *Guard) room(body []byte, n int) []byte {
	size := len(body) + n
	if !g.offloads || size <= cap(body) || size <= copyBuffer/8 {
		return body
	}
	return slices.Grow(body, max(size, min(8*size, g.cfg.Limits.ResponseBody))-len(body))
}

// spoolMore adds the next part of the body.
func (x *Exchange) spoolMore(p []byte) {
	x.keepHead(p)
	if x.spool == nil {
		return
	}
	if _, err := x.spool.Write(p); err != nil {
		x.spool = nil
		x.blobFailed(err)
	}
}

// canOffload reports whether a body over the limit may be kept whole. One with trailers
// may not: they leave no way to tell a client that a body broke off. The message of a
// call has to be whole in memory.
func (x *Exchange) canOffload(c *Captured) bool {
	long := x.spool != nil || len(c.Body) > x.guard.cfg.Limits.ResponseBody
	return x.guard.offloads && long && !x.request.isCall() && len(x.scratch.trailers) == 0
}

// dropSpool removes the spool.
func (x *Exchange) dropSpool() {
	if x.spool != nil {
		x.spool.Close()
		x.spool = nil
	}
}

// flushSpool completes the spool of a handler that returned.
func (x *Exchange) flushSpool() {
	if x.spool == nil {
		return
	}
	if _, err := x.spool.Ref(); err != nil {
		x.spool = nil
		x.blobFailed(err)
	}
}

// offload writes the body to the blob store: the spooled one, or the one that the
// framework has in memory.
func (x *Exchange) offload(c *Captured) (ref record.Blob, ok bool) {
	if x.spool == nil {
		x.startSpool()
		x.spoolMore(c.Body)
		x.flushSpool()
		defer x.dropSpool() // the framework sends its copy
	}
	if x.spool == nil {
		return record.Blob{}, false
	}
	ref, err := x.spool.Ref()
	if err == nil {
		err = x.guard.putBlob(x.Context(), ref, x.spool)
	}
	if err != nil {
		x.blobFailed(err)
		return record.Blob{}, false
	}
	x.guard.counts.offloaded.Add(1)
	return ref, true
}

// blobFailed counts and reports a body that is not kept.
func (x *Exchange) blobFailed(err error) {
	x.unkept = err
	x.guard.counts.notOffloaded.Add(1)
	x.guard.reportBlob(x.Context(), x.attempt.ID(), fmt.Errorf("the body of a response is not kept: %w", err))
}

// blobNotWritten is instead for effects that were rolled back because the body could not
// be kept. If it may be kept later, the client waits as long as for a store.
func (x *Exchange) blobNotWritten() Reply {
	if x.unkept == nil || errors.Is(x.unkept, spool.ErrLimit) {
		return x.instead(CodeResponseTooLarge)
	}
	p := x.guard.problems.of(CodeNotApplied)
	p.RetryAfter = retryStore
	return Reply{Replace: true, Response: x.guard.write(x.Context(), x.request, p)}
}

// putBlob writes a spool to the blob store.
func (g *Guard) putBlob(ctx context.Context, ref record.Blob, s *spool.Spool) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Offload.Timeout) // the completion reports a lost lease
	defer cancel()
	defer recovered("Config.Offload.Blobs.Put", &err)
	return g.cfg.Offload.Blobs.Put(ctx, ref.Name(), s.Section(ctx))
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

// fetchBlob reads a blob into a spool and checks it. The caller closes the spool.
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

// reportBlob notifies the observer of a failure of the blob store.
func (g *Guard) reportBlob(ctx context.Context, id store.ID, err error) {
	g.report(ctx, reprise.Event{Kind: EventBlobError, ID: id, Err: err})
}

// BlobStore keeps the response bodies that [Offloading] moves out of the records. Package
// repriseblob implements it over the buckets of S3, Google Cloud Storage and Azure, over
// files, and in memory.
//
// A name is the day on which the blob was written and the SHA-256 of its bytes, such as
// "20261122/9f86d081…": letters, digits and one slash. A blob never changes. A body is
// compared with its record before the first byte is sent, so a store that loses or
// damages a blob causes no wrong response.
//
// A blob outlives its record: a sweep, or a lifecycle rule of the bucket, deletes those
// that are older than every record. It deletes by the day in the name, or by the age of
// the object, which is at most a day younger. It cannot meet a writer: a name is written
// only on its own day.
//
// Both methods are called from many goroutines. They return soon after ctx ends, and do
// not use their arguments after they returned. A panic counts as an error.
type BlobStore interface {
	// Put stores body under name, whole or not at all: a reader of the name never finds a
	// part. A name that is there already has the same bytes; it is written again, or its
	// age begins anew. The error says that the blob may be missing.
	Put(ctx context.Context, name string, body *io.SectionReader) error

	// Open returns the bytes under name; the caller closes the reader. ctx also ends the
	// reading. The error wraps [ErrNoBlob] only where the store knows that there is no
	// such blob: its retries get 409 result-unavailable. Any other error, also of the
	// reader, is taken for one that passes: 503 store-unavailable. A reader that ends
	// early without an error is taken for a damaged blob.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
}

// ErrNoBlob says that a [BlobStore] has no blob of a name.
var ErrNoBlob = errors.New("reprise: the blob store has no blob of this name")
