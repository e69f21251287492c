package protocol

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
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

	key *blobKey // of the bytes, if the record is sealed; else nil
}

// length returns how long the body is that the blob has.
func (b *BlobRef) length() int64 {
	if b.key == nil {
		return b.Size
	}
	plain, _ := sealedBlobSize(b.Size)
	return plain
}

// Name returns the name of the blob in its store.
func (b BlobRef) Name() string {
	return time.Unix(int64(b.Day)*secondsPerDay, 0).UTC().Format(dayLayout) + "/" + hex.EncodeToString(b.SHA256[:])
}

const (
	secondsPerDay = 24 * 60 * 60
	dayLayout     = "20060102"
	lastDay       = 2_932_896 // 9999-12-31
)

// OffloadedError says that the body of a stored response is in a [BlobStore]. See
// [DecodeResponse].
type OffloadedError struct{ Blob BlobRef }

// Error implements error.
func (e *OffloadedError) Error() string {
	return fmt.Sprintf("reprise: the body of the response (%d bytes) is in the blob store as %s", e.Blob.Size, e.Blob.Name())
}

// The form in which a record refers to a blob, in place of a body, with big-endian
// numbers; docs/engineering/adr/0003-stored-response.md explains it:
//
//	u8 version ‖ u64 size ‖ 32 bytes SHA-256 ‖ u32 day
//
// In version 2, which only sealed records have, the key of the blob follows:
//
//	32 bytes key
const (
	blobRefVersion = 1
	blobRefSealed  = 2 // the version of a blob with a key
	blobRefSize    = 1 + 8 + 32 + 4
	blobKeySize    = 32
)

// size returns how many bytes append appends.
func (b *BlobRef) size() int {
	if b.key != nil {
		return blobRefSize + blobKeySize
	}
	return blobRefSize
}

// append appends the encoded form of b to dst.
func (b *BlobRef) append(dst []byte) []byte {
	version := byte(blobRefVersion)
	if b.key != nil {
		version = blobRefSealed
	}
	dst = append(dst, version)
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.Size)) //nolint:gosec // sizes are positive
	dst = append(dst, b.SHA256[:]...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.Day)) //nolint:gosec // lastDay bounds it
	if b.key != nil {
		dst = append(dst, b.key[:]...)
	}
	return dst
}

// decodeBlobRef reads what append wrote. ok is false for anything else.
func decodeBlobRef(ref []byte) (b BlobRef, ok bool) {
	switch {
	case len(ref) == blobRefSize && ref[0] == blobRefVersion:
	case len(ref) == blobRefSize+blobKeySize && ref[0] == blobRefSealed:
		key := blobKey(ref[blobRefSize:])
		b.key = &key
	default:
		return BlobRef{}, false
	}
	b.Size = int64(binary.BigEndian.Uint64(ref[1:])) //nolint:gosec // a negative one is refused
	copy(b.SHA256[:], ref[9:])
	b.Day = int(binary.BigEndian.Uint32(ref[41:]))
	plain, ok := b.Size, true
	if b.key != nil && b.Size > 0 && b.Size <= 2*maxBlob {
		plain, ok = sealedBlobSize(b.Size)
	}
	return b, ok && b.Size > 0 && plain <= maxBlob && b.Day <= lastDay
}
