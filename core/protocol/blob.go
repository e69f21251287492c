package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/reprise-go/reprise/core/protocol/internal/record"
)

// BlobStore keeps the response bodies that [Offloading] moves out of the records. Package
// repriseblob implements it over the buckets of S3, Google Cloud Storage and Azure, over
// files, and in memory.
//
// A name is the day on which the blob was written and the SHA-256 of its bytes, such as
// "20261122/9f86d081…": letters, digits and one slash. A blob never changes. What is read
// is compared with its record before any of it leaves, so a store that loses or damages a
// blob makes no wrong response.
//
// Nothing deletes a blob when its record ends: a sweep, or a lifecycle rule of the
// bucket, deletes those that are older than every record. It deletes by the day in the
// name, or by the age of the object, which is at most a day younger. It cannot meet a
// writer: a name is written only on its own day.
//
// Both methods are called from many goroutines. They return soon after ctx ends, and use
// nothing that they were given after they returned. A panic is taken for an error.
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

// BlobRef is what a record keeps of a body that a [BlobStore] has.
type BlobRef struct {
	SHA256 [32]byte // of its bytes
	Size   int64    // how many they are; at least 1
	Day    int      // when it was written, in days since 1970-01-01 UTC: 0 to 2,932,896
}

// Name returns the name of the blob in its store.
func (b BlobRef) Name() string {
	ref := record.Blob{SHA256: b.SHA256, Size: b.Size, Day: b.Day}
	return ref.Name()
}

// OffloadedError says that the body of a stored response is in a [BlobStore]. See
// [DecodeResponse].
type OffloadedError struct{ Blob BlobRef }

// Error implements error.
func (e *OffloadedError) Error() string {
	return fmt.Sprintf("reprise: the body of the response (%d bytes) is in the blob store as %s", e.Blob.Size, e.Blob.Name())
}
