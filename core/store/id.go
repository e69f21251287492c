package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/reprise-go/reprise/core/internal/digest"
)

// ID identifies an operation: SHA-256 over scope, endpoint and key. It is the only form
// of a client's key that a store ever sees. Its short form is safe to log.
type ID [sha256.Size]byte

// idLabel separates the digests of this version and purpose from all others. If it or
// anything else in the layout changes, every operation in flight runs twice: see
// docs/engineering/adr/0002-byte-layouts.md.
const idLabel = "reprise/id/1\x00"

// DeriveID returns the ID of key for scope and endpoint. Each part is preceded by its
// length, so different triples have different IDs. Layout, version 1:
//
//	SHA-256("reprise/id/1\0" ‖ u64(len scope) ‖ scope ‖ u64(len endpoint) ‖ endpoint ‖ u64(len key) ‖ key)
//
// with big-endian lengths.
func DeriveID(scope, endpoint, key string) ID {
	var stack [512]byte
	b := append(stack[:0], idLabel...)
	b = digest.AppendPart(b, scope)
	b = digest.AppendPart(b, endpoint)
	b = digest.AppendPart(b, key)
	return sha256.Sum256(b)
}

// String returns the ID in hexadecimal, 64 digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID returns the ID that [ID.String] wrote, in upper or lower case. The error wraps
// [ErrInvalid].
func ParseID(text string) (id ID, err error) {
	if b, err := hex.DecodeString(text); err == nil && len(b) == len(id) {
		return ID(b), nil
	}
	return ID{}, fmt.Errorf("%w: an ID has %d hexadecimal digits", ErrInvalid, 2*len(id))
}

// Short returns the first 12 hexadecimal digits, enough to find an operation in a log.
func (id ID) Short() string { return hex.EncodeToString(id[:6]) }

// Fingerprint is a digest of the content of a request. It binds a key to one request. The
// package protocol derives it from an HTTP request; other callers use a digest of their
// message.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns the fingerprint of anything but an HTTP request, such as a
// message: the digest of its parts, each of which is preceded by its length. Make the key
// the first part: then a reader of the records cannot guess short messages. Layout,
// version 1, with big-endian lengths:
//
//	SHA-256("reprise/value/1\0" ‖ u64(len part) ‖ part ‖ …)
func FingerprintOf(parts ...[]byte) Fingerprint {
	h := sha256.New()
	h.Write([]byte(valueLabel))
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return Fingerprint(h.Sum(nil))
}

// valueLabel is the idLabel of [FingerprintOf].
const valueLabel = "reprise/value/1\x00"

// Owner is the random token of one attempt. It permits its holder to end the attempt, so
// it never leaves the process and its store.
type Owner [16]byte

// NewOwner returns a random owner.
func NewOwner() Owner {
	var o Owner
	_, _ = rand.Read(o[:]) // never fails: it ends the program instead
	return o
}

// IsZero reports whether o is the zero value, which no attempt has.
func (o Owner) IsZero() bool { return o == Owner{} }
