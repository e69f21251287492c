// Package digest has the encoding of lists of texts that are digested, and the digest
// that engines and operators share.
package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// AppendPart appends the length of s, as a big-endian uint64, and s, so that different
// lists of parts have different encodings.
func AppendPart(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
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
