package protocol

import (
	"context"
	"errors"
	"io"
)

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
