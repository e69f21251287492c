// Package digest has the encoding of lists of texts that are digested.
package digest

import "encoding/binary"

// AppendPart appends the length of s, as a big-endian uint64, and s, so that different
// lists of parts have different encodings.
func AppendPart(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}
