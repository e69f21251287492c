// Package digest has the encoding of lists of texts that are digested, and the digest
// that engines and operators share.
package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// AppendPart appends the length of part, as a big-endian uint64, and part, so that
// different lists of parts have different encodings.
func AppendPart[S string | []byte](b []byte, part S) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
	return append(b, part...)
}

// OpenPart reserves room for the length of the part that follows. [ClosePart] fills it
// in.
func OpenPart(b []byte) (opened []byte, at int) {
	return binary.BigEndian.AppendUint64(b, 0), len(b)
}

// ClosePart fills in the length of the part that OpenPart began at.
func ClosePart(b []byte, at int) {
	binary.BigEndian.PutUint64(b[at:], uint64(len(b[at+8:])))
}

// DownstreamKey returns the key that reprise.AttemptView.Key documents.
func DownstreamKey(id, fingerprint [sha256.Size]byte, name string) string {
	b := make([]byte, 0, 128)
	b = append(b, "reprise/downstream/1\x00"...)
	b = append(b, id[:]...)
	b = append(b, fingerprint[:]...)
	b = AppendPart(b, name)
	sum := sha256.Sum256(b)
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
