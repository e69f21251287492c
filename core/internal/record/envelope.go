package record

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

// The layout of an envelope, with big-endian numbers;
// docs/engineering/adr/0016-sealed-answers.md explains it:
//
//	u8 version ‖ u8 flags ‖ u64 time ‖ u32 length of the head ‖ u32 length of the rest ‖ u8 length of the ID ‖ ID of the secret
//	‖ head ‖ 12 bytes nonce ‖ ciphertext ‖ 16 bytes tag
//
// The time is that of the sealing, in seconds since 1970. Head and rest are the two parts
// of an encoded stored response: the head is in the clear, and empty unless the flags
// have envelopeHead, and the rest is encrypted.
//
// The version is a byte with which no stored response begins.
const (
	envelopeVersion  = 0x81
	envelopeAny      = 0x80 // set in every version, and in no stored response's
	envelopeHeadSize = 1 + 1 + 8 + 4 + 4 + 1
	envelopeNonce    = 12
	envelopeTag      = 16
)

// MaxSecretID is how long the ID of a secret may be, in bytes.
const MaxSecretID = 32

// envelopeHead is the flag of a head in the clear. The others are reserved: an envelope
// that has one is Corrupt.
const envelopeHead = 2

// sealLabel separates the keys of this version and purpose from all others.
const sealLabel = "reprise/seal/1\x00"

// The defects of an envelope.
var (
	errEnvelopeVersion = Corrupt("is sealed in a version that this release does not know")
	errEnvelopeFlags   = Corrupt("is sealed with flags that this release does not know")
	errEnvelopeLength  = Corrupt("is sealed, and does not have its declared length")
	errEnvelopeOpen    = Corrupt("is sealed, and cannot be opened with the key of this request: it is damaged, or was not sealed for this operation and request")
)

// SealedFor names the operation and the request that a response is sealed for.
type SealedFor struct {
	ID          store.ID
	Fingerprint store.Fingerprint
	Key         string // the client's Idempotency-Key, decoded
}

// Envelope is a sealed response, with its parts as views into the payload.
type Envelope struct {
	flags  byte
	Time   time.Time // of the sealing, as it says
	Secret string    // the ID of the secret
	size   int       // of the rest
	start  []byte    // everything before the nonce
	head   []byte
	sealed []byte // nonce, ciphertext and tag
}

// IsSealed reports whether a payload is sealed.
func IsSealed(payload []byte) bool { return len(payload) > 0 && payload[0]&envelopeAny != 0 }

// ParseEnvelope reads an envelope, which is not empty, without opening it. It is
// untrusted input: everything that can be checked without the key is checked.
func ParseEnvelope(payload []byte) (Envelope, error) {
	if payload[0] != envelopeVersion {
		return Envelope{}, errEnvelopeVersion
	}
	if len(payload) < envelopeHeadSize {
		return Envelope{}, errEnvelopeLength
	}
	e := Envelope{flags: payload[1], Time: time.Unix(int64(binary.BigEndian.Uint64(payload[2:])), 0)} //nolint:gosec // a negative time is long ago
	if e.flags&^envelopeHead != 0 {
		return Envelope{}, errEnvelopeFlags
	}
	head, size, id := uint64(binary.BigEndian.Uint32(payload[10:])), uint64(binary.BigEndian.Uint32(payload[14:])), uint64(payload[18])
	before := envelopeHeadSize + id + head
	if id == 0 || id > MaxSecretID || (head > 0) != (e.flags&envelopeHead != 0) || uint64(len(payload)) != before+envelopeNonce+size+envelopeTag {
		return Envelope{}, errEnvelopeLength
	}
	e.Secret = string(payload[envelopeHeadSize : envelopeHeadSize+id])
	if !syntax.Printable(e.Secret) {
		return Envelope{}, errEnvelopeLength
	}
	e.start, e.head, e.sealed = payload[:before], payload[envelopeHeadSize+id:before], payload[before:]
	e.size = len(e.sealed) - envelopeNonce - envelopeTag
	return e, nil
}

// sealBuffers is memory for sealing and opening, reused by later calls.
type sealBuffers struct {
	material []byte // of a key
	data     []byte // the associated data
}

var sealPool = sync.Pool{New: func() any { return new(sealBuffers) }}

func (b *sealBuffers) free() {
	clear(b.material[:cap(b.material)]) // the client's key was in it
	b.material, b.data = b.material[:0], b.data[:0]
	sealPool.Put(b)
}

// aead returns the cipher for the responses of one operation. The key is
//
//	HKDF-SHA-256(secret: "reprise/seal/1\0" ‖ the client's key; salt: the master secret; info: the ID)
//
// where the ID is a digest of scope, endpoint and key. The nonces are random: an
// operation has few attempts, and each of them seals once or twice. Of 2³² envelopes
// under one key, two have the same nonce with a probability of 2⁻³².
func (b *sealBuffers) aead(secret []byte, who *SealedFor) cipher.AEAD {
	b.material = append(append(b.material[:0], sealLabel...), who.Key...)
	key, err := hkdf.Key(sha256.New, b.material, secret, string(who.ID[:]), 32)
	if err != nil {
		panic(err) // never: the label alone is long enough even where FIPS 140 is enforced
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // never: it is a length of AES
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // never: it is AES
	}
	return aead
}

// associated returns the associated data: the authenticated data besides the plaintext.
func (b *sealBuffers) associated(start []byte, who *SealedFor) []byte {
	b.data = append(append(append(b.data[:0], who.ID[:]...), who.Fingerprint[:]...), start...)
	return b.data
}

// Secret is a master secret.
type Secret struct {
	ID  string // 1 to 32 bytes of printable US-ASCII
	Key []byte
}

// Seal appends the envelope of an encoded response, with its head in the clear or not.
func Seal(dst, encoded []byte, secret Secret, clearHead bool, who *SealedFor) []byte {
	b := sealPool.Get().(*sealBuffers)
	defer b.free()
	aead := b.aead(secret.Key, who)
	flags, head := byte(0), 0
	if clearHead {
		flags, head = envelopeHead, sizeOfHead(encoded)
	}
	rest := encoded[head:]
	begin := len(dst)
	dst = append(slices.Grow(dst, envelopeHeadSize+len(secret.ID)+head+envelopeNonce+len(rest)+envelopeTag), envelopeVersion, flags)
	dst = binary.BigEndian.AppendUint64(dst, uint64(time.Now().Unix())) //nolint:gosec // after 1970
	dst = append32(append32(dst, head), len(rest))
	dst = append(append(dst, byte(len(secret.ID))), secret.ID...) //nolint:gosec // at most MaxSecretID
	dst = append(dst, encoded[:head]...)
	return aead.Seal(dst, nil, rest, b.associated(dst[begin:], who)) //nolint:gosec // this cipher makes its nonce itself, and wants nil
}

// sizeOfHead returns how many bytes of an encoded response come before its body.
func sizeOfHead(encoded []byte) int {
	size := headSize + int(binary.BigEndian.Uint32(encoded[6:]))
	if encoded[0] == annotatedVersion {
		size += 1 + int(encoded[headSize])
	}
	return size
}

// Open returns the encoded response of an envelope that was sealed with the key of a
// secret. The error wraps [store.ErrCorrupt].
func (e *Envelope) Open(key []byte, who *SealedFor) ([]byte, error) {
	b := sealPool.Get().(*sealBuffers)
	defer b.free()
	aead := b.aead(key, who)
	encoded := append(make([]byte, 0, len(e.head)+e.size), e.head...)
	encoded, err := aead.Open(encoded, nil, e.sealed, b.associated(e.start, who))
	if err != nil {
		return nil, errEnvelopeOpen
	}
	return encoded, nil
}

// ClearHead returns the encoded form of the head that is in the clear, as that of a
// response without a body. It is not verified, and nil if there is none.
func (e *Envelope) ClearHead() []byte {
	switch {
	case len(e.head) == 0:
		return nil
	case len(e.head) < headSize:
		return e.head // which cannot be decoded
	}
	alone := append(make([]byte, 0, len(e.head)+sumSize), e.head...)
	alone[1] = 0                              // the flags speak of the body,
	binary.BigEndian.PutUint32(alone[10:], 0) // which is not there
	return binary.BigEndian.AppendUint32(alone, crc32.Checksum(alone, castagnoli))
}
