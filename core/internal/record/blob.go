package record

import (
	"encoding/binary"
	"encoding/hex"
	"time"
)

// Blob is a reference to a body in a blob store, which a record has in place of the body.
type Blob struct {
	SHA256 [32]byte // of its bytes
	Size   int64    // how many they are; at least 1
	Day    int      // when it was written, in days since 1970-01-01 UTC: 0 to 2,932,896
	Key    *BlobKey // of the bytes, if the record is sealed; else nil
}

// MaxBlob is how long a body in a blob store may be, in bytes.
const MaxBlob = 1 << 40

// Length returns how long the body is that the blob has.
func (b *Blob) Length() int64 {
	if b.Key == nil {
		return b.Size
	}
	plain, _ := plainBlobSize(b.Size)
	return plain
}

// Name returns the name of the blob in its store.
func (b *Blob) Name() string {
	return time.Unix(int64(b.Day)*secondsPerDay, 0).UTC().Format(dayLayout) + "/" + hex.EncodeToString(b.SHA256[:])
}

// Day returns the day of an instant, as a [Blob] counts it.
func Day(t time.Time) int { return int(t.Unix() / secondsPerDay) }

const (
	secondsPerDay = 24 * 60 * 60
	dayLayout     = "20060102"
	lastDay       = 2_932_896 // 9999-12-31
)

// The form in which a record refers to a blob, in place of a body, with big-endian
// numbers; docs/engineering/adr/0003-stored-response.md explains it:
//
//	u8 version ‖ u64 size ‖ 32 bytes SHA-256 ‖ u32 day
//
// In version 2, which only sealed records have, the key of the blob follows:
//
//	32 bytes key
const (
	blobVersion = 1
	blobSealed  = 2 // the version of a blob with a key
	blobSize    = 1 + 8 + 32 + 4
	blobKeySize = 32
)

// size returns how many bytes append appends.
func (b *Blob) size() int {
	if b.Key != nil {
		return blobSize + blobKeySize
	}
	return blobSize
}

// append appends the encoded form of b to dst.
func (b *Blob) append(dst []byte) []byte {
	version := byte(blobVersion)
	if b.Key != nil {
		version = blobSealed
	}
	dst = append(dst, version)
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.Size)) //nolint:gosec // sizes are positive
	dst = append(dst, b.SHA256[:]...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.Day)) //nolint:gosec // lastDay bounds it
	if b.Key != nil {
		dst = append(dst, b.Key[:]...)
	}
	return dst
}

// decodeBlob parses the result of append. ok is false for anything else.
func decodeBlob(ref []byte) (b Blob, ok bool) {
	switch {
	case len(ref) == blobSize && ref[0] == blobVersion:
	case len(ref) == blobSize+blobKeySize && ref[0] == blobSealed:
		key := BlobKey(ref[blobSize:])
		b.Key = &key
	default:
		return Blob{}, false
	}
	b.Size = int64(binary.BigEndian.Uint64(ref[1:])) //nolint:gosec // a negative one is refused
	copy(b.SHA256[:], ref[9:])
	b.Day = int(binary.BigEndian.Uint32(ref[41:]))
	plain, ok := b.Size, true
	if b.Key != nil && b.Size > 0 && b.Size <= 2*MaxBlob {
		plain, ok = plainBlobSize(b.Size)
	}
	return b, ok && b.Size > 0 && plain <= MaxBlob && b.Day <= lastDay
}
