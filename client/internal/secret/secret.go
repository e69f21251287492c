// Package secret keeps the key of a call in its error, where every printer would show it,
// and makes the digits that are shown instead.
package secret

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Hash returns the form of a key in errors and events, 12 hexadecimal digits: those with
// which the ID of its record begins at a service of Reprise (docs/reference/formats.md),
// if the scope is known, and otherwise those of its own digest.
func Hash(scope, endpoint, key string) string {
	text := []byte(key)
	if scope != "" {
		text = []byte("reprise/id/1\x00")
		for _, part := range []string{scope, endpoint, key} {
			text = append(binary.BigEndian.AppendUint64(text, uint64(len(part))), part...)
		}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// Keyed is an error's part that has the key. It is in a function, because there are
// printers that show every field.
type Keyed struct{ key func() string }

// Of returns the part with a key.
func Of(key string) Keyed { return Keyed{func() string { return key }} }

// Key returns the key of the call, including one that the transport generated. The call
// can be repeated with it and the same bytes at any time. It is empty if the client
// refused the request. No printed form of the error has the key: keep it out of logs.
func (k Keyed) Key() string {
	if k.key == nil {
		return ""
	}
	return k.key()
}
