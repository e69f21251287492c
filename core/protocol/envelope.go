package protocol

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// ErrSealed says that a response can be read only with the key of its client. See
// [DecodeResponse].
var ErrSealed = errors.New("reprise: the response is sealed, and can be read with the key of its client only")

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

// envelopeHead is the flag of a head in the clear. The others are reserved: an envelope
// that has one is corrupt.
const envelopeHead = 2

// sealLabel separates the keys of this version and purpose from all others.
const sealLabel = "reprise/seal/1\x00"

// What can be wrong with an envelope.
var (
	errEnvelopeVersion = corrupt("is sealed in a version that this release does not know")
	errEnvelopeFlags   = corrupt("is sealed with flags that this release does not know")
	errEnvelopeLength  = corrupt("is sealed, and does not have its declared length")
	errEnvelopeOpen    = corrupt("is sealed, and cannot be opened with the key of this request: it is damaged, or was not sealed for this operation and request")
	errEnvelopeAge     = corrupt("was sealed longer ago than Config.Seal.MaxAge")
	errEnvelopeWeak    = corrupt("is sealed without a secret, which Config.Seal.Strict refuses")
	errEnvelopeHead    = corrupt("is sealed, and its head cannot be read")
	errNotSealed       = corrupt("is not sealed, which Config.Seal.Strict refuses")
)

// SealedFor names the operation and the request that a response is sealed for.
type SealedFor struct {
	ID          store.ID
	Fingerprint store.Fingerprint
	Key         string // the client's Idempotency-Key, decoded
}

// envelope is a sealed response, with its parts as views into the payload.
type envelope struct {
	flags  byte
	time   int64
	secret string
	size   int    // of the rest
	start  []byte // everything before the nonce
	head   []byte
	sealed []byte // nonce, ciphertext and tag
}

// isEnvelope reports whether a payload is sealed.
func isEnvelope(payload []byte) bool { return len(payload) > 0 && payload[0]&envelopeAny != 0 }

// parseEnvelope reads an envelope without opening it. It is untrusted input: everything
// that can be checked without the key is checked.
func parseEnvelope(payload []byte) (envelope, error) {
	if payload[0] != envelopeVersion {
		return envelope{}, errEnvelopeVersion
	}
	if len(payload) < envelopeHeadSize {
		return envelope{}, errEnvelopeLength
	}
	e := envelope{flags: payload[1], time: int64(binary.BigEndian.Uint64(payload[2:]))} //nolint:gosec // a negative time is long ago
	if e.flags&^envelopeHead != 0 {
		return envelope{}, errEnvelopeFlags
	}
	head, size, id := uint64(binary.BigEndian.Uint32(payload[10:])), uint64(binary.BigEndian.Uint32(payload[14:])), uint64(payload[18])
	before := envelopeHeadSize + id + head
	if id > maxSecretID || (head > 0) != (e.flags&envelopeHead != 0) || uint64(len(payload)) != before+envelopeNonce+size+envelopeTag {
		return envelope{}, errEnvelopeLength
	}
	e.secret = string(payload[envelopeHeadSize : envelopeHeadSize+id])
	if !printable(e.secret) {
		return envelope{}, errEnvelopeLength
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
	b.material, b.data = wiped(b.material), again(b.data)
	sealPool.Put(b)
}

// wiped returns the memory of b for reuse without what was in it, or nil if there is too
// much of it.
func wiped(b []byte) []byte {
	clear(b[:cap(b)])
	return again(b)
}

// aead returns the cipher for the responses of one operation. The key is
//
//	HKDF-SHA-256(secret: "reprise/seal/1\0" ‖ the client's key; salt: the master secret, or none; info: the ID)
//
// where the ID is a digest of scope, endpoint and key. The nonces are random: an
// operation has few attempts, and each of them seals once or twice. Of 2³² envelopes
// under one key, two have the same nonce with a probability of 2⁻³².
func (b *sealBuffers) aead(secret Secret, who *SealedFor) cipher.AEAD {
	b.material = append(append(b.material[:0], sealLabel...), who.Key...)
	key, err := hkdf.Key(sha256.New, b.material, secret.bytes(), string(who.ID[:]), 32)
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

// associated returns the associated data: what else than the plaintext is authenticated.
func (b *sealBuffers) associated(start []byte, who *SealedFor) []byte {
	b.data = append(append(append(b.data[:0], who.ID[:]...), who.Fingerprint[:]...), start...)
	return b.data
}

// appendSealed appends the envelope of an encoded response, which is s.
func (c *Sealing) appendSealed(dst, encoded []byte, s *stored, who *SealedFor) []byte {
	b := sealPool.Get().(*sealBuffers)
	defer b.free()
	aead := b.aead(c.Secret, who)
	flags, head := byte(0), 0
	if c.ClearHead {
		flags, head = envelopeHead, s.headSize()
	}
	rest := encoded[head:]
	id := c.Secret.ID()
	begin := len(dst)
	dst = append(slices.Grow(dst, envelopeHeadSize+len(id)+head+envelopeNonce+len(rest)+envelopeTag), envelopeVersion, flags)
	dst = binary.BigEndian.AppendUint64(dst, uint64(time.Now().Unix())) //nolint:gosec // after 1970
	dst = append32(append32(dst, head), len(rest))
	dst = append(append(dst, byte(len(id))), id...) //nolint:gosec // NewSecret bounds it
	dst = append(dst, encoded[:head]...)
	return aead.Seal(dst, nil, rest, b.associated(dst[begin:], who)) //nolint:gosec // this cipher makes its nonce itself, and wants nil
}

// open returns the encoded response of a payload, which is the payload itself if that is
// not sealed. The error wraps [store.ErrCorrupt].
func (c *Sealing) open(payload []byte, who *SealedFor) ([]byte, error) {
	if !isEnvelope(payload) {
		if c.Strict {
			return nil, errNotSealed
		}
		return payload, nil
	}
	e, err := parseEnvelope(payload)
	if err != nil {
		return nil, err
	}
	secret, known := c.secret(e.secret)
	switch {
	case !known:
		return nil, fmt.Errorf("%w: the stored response is sealed with the secret %q, which Config.Seal does not have", store.ErrCorrupt, e.secret)
	case c.Strict && e.secret == "" && c.Secret.held != nil:
		return nil, errEnvelopeWeak
	case c.MaxAge > 0 && time.Since(time.Unix(e.time, 0)) > c.MaxAge:
		return nil, errEnvelopeAge
	}
	b := sealPool.Get().(*sealBuffers)
	defer b.free()
	aead := b.aead(secret, who)
	encoded := append(make([]byte, 0, len(e.head)+e.size), e.head...)
	if encoded, err = aead.Open(encoded, nil, e.sealed, b.associated(e.start, who)); err != nil {
		return nil, errEnvelopeOpen
	}
	return encoded, nil
}

// clearHead reads the head that is in the clear, which nobody has verified. ok is false
// if there is none.
func (e *envelope) clearHead() (s stored, ok bool) {
	if len(e.head) < storedHeadSize {
		return stored{}, false
	}
	alone := append(make([]byte, 0, len(e.head)+storedSumSize), e.head...)
	alone[1] = 0                              // the flags speak of the body,
	binary.BigEndian.PutUint32(alone[10:], 0) // which is not there
	s, err := decodeStored(binary.BigEndian.AppendUint32(alone, crc32.Checksum(alone, castagnoli)))
	return s, err == nil
}

// decodeSealed is DecodeResponse of an envelope.
func decodeSealed(payload []byte) (Response, error) {
	e, err := parseEnvelope(payload)
	if err != nil {
		return Response{}, err
	}
	s, ok := e.clearHead()
	if !ok && len(e.head) > 0 {
		return Response{}, errEnvelopeHead
	}
	return Response{Status: s.status, Header: s.header, Trailer: s.trailer}, ErrSealed
}

// SealResponse is [EncodeResponse], sealed for an operation: what a guard with this
// policy replays to the request of that key and fingerprint. It is for operators who know
// the client's key, and for tests. See [Sealing.OpenResponse].
func (c Sealing) SealResponse(r Response, who SealedFor) ([]byte, error) {
	encoded, err := EncodeResponse(r)
	if err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	s := storedOf(r)
	return c.appendSealed(nil, encoded, &s, &who), nil
}

// OpenResponse is [DecodeResponse] for who knows the client's key, and has the secret if
// there is one. A payload that is not sealed is decoded too, unless the policy is Strict.
// The error wraps [store.ErrCorrupt] if it cannot be opened.
func (c Sealing) OpenResponse(payload []byte, who SealedFor) (Response, error) {
	encoded, err := c.open(payload, &who)
	if err != nil {
		return Response{}, err
	}
	return DecodeResponse(encoded)
}
