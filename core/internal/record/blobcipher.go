package record

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"io"
)

// A guard that seals encrypts the bodies that it offloads, too, on their way into the
// spool, so that neither the blob store nor the temporary file has them in the clear.
// Each blob has a random key, which the sealed record keeps; the digest and the size in
// the record are those of the encrypted bytes.
//
// The body is cut into chunks of 64 KiB, of which the last one may be shorter and is
// never empty. Each is
//
//	12 bytes nonce ‖ ciphertext ‖ 16 bytes tag
//
// of AES-256-GCM, with the associated data
//
//	"reprise/blob/1\0" ‖ u64 number of the chunk, from 0 ‖ u8 1 for the last chunk, else 0
//
// so that no chunk can be left out, moved, repeated or added.
const (
	blobChunk    = 64 << 10
	blobOverhead = envelopeNonce + envelopeTag
	blobLabel    = "reprise/blob/1\x00"
)

// BlobKey is the key of a sealed blob.
type BlobKey [32]byte

// blobCipher seals or opens the chunks of one blob.
type blobCipher struct {
	aead       cipher.AEAD
	associated []byte
	n          uint64 // of the next chunk
}

func newBlobCipher(key *BlobKey) *blobCipher {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // never: it is a length of AES
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // never: it is AES
	}
	return &blobCipher{aead: aead, associated: append(make([]byte, 0, len(blobLabel)+9), blobLabel...)}
}

// next returns the associated data of the next chunk.
func (c *blobCipher) next(last bool) []byte {
	b := binary.BigEndian.AppendUint64(c.associated[:len(blobLabel)], c.n)
	c.n++
	if last {
		return append(b, 1)
	}
	return append(b, 0)
}

// BlobSealer encrypts a body on its way to the blob store. [NewBlobSealer] returns one.
type BlobSealer struct {
	*blobCipher

	key    BlobKey
	chunk  []byte // clear bytes; full only until more comes
	sealed []byte
	size   int64 // of the written bytes
	ended  bool
}

// NewBlobSealer returns the sealer of one body, with a random key.
func NewBlobSealer() *BlobSealer {
	s := &BlobSealer{chunk: make([]byte, 0, blobChunk), sealed: make([]byte, 0, blobChunk+blobOverhead)}
	_, _ = rand.Read(s.key[:]) // never fails: it ends the program instead
	s.blobCipher = newBlobCipher(&s.key)
	return s
}

// Key returns the key of the blob.
func (s *BlobSealer) Key() *BlobKey { return &s.key }

// Size returns how many bytes were written.
func (s *BlobSealer) Size() int64 { return s.size }

// Write seals p and gives every chunk that is full, and not the last one, to out.
func (s *BlobSealer) Write(p []byte, out func([]byte) error) error {
	for len(p) > 0 {
		if len(s.chunk) == blobChunk {
			if err := s.flush(false, out); err != nil {
				return err
			}
		}
		n := min(len(p), blobChunk-len(s.chunk))
		s.chunk, p = append(s.chunk, p[:n]...), p[n:]
		s.size += int64(n)
	}
	return nil
}

// End gives the last chunk to out. It does so once.
func (s *BlobSealer) End(out func([]byte) error) error {
	if s.ended {
		return nil
	}
	s.ended = true
	return s.flush(true, out)
}

func (s *BlobSealer) flush(last bool, out func([]byte) error) error {
	sealed := s.aead.Seal(s.sealed[:0], nil, s.chunk, s.next(last)) //nolint:gosec // this cipher makes its nonce itself, and wants nil
	s.chunk = s.chunk[:0]
	return out(sealed)
}

// SealedBlobSize returns how many bytes the sealed blob of a body of a size has.
func SealedBlobSize(plain int64) int64 {
	return plain + (plain+blobChunk-1)/blobChunk*blobOverhead
}

// plainBlobSize returns how long the body in a sealed blob of a size is. ok is false if
// no blob has that size.
func plainBlobSize(size int64) (plain int64, ok bool) {
	const whole = blobChunk + blobOverhead
	chunks := (size + whole - 1) / whole
	plain = size - chunks*blobOverhead
	return plain, plain > (chunks-1)*blobChunk
}

// BlobOpener reads a sealed blob. A chunk leaves once it was authenticated.
type BlobOpener struct {
	*blobCipher

	from  *io.SectionReader
	chunk []byte
	plain []byte
	rest  []byte // of plain, to be read
}

// NewBlobOpener returns a reader of the body of a sealed blob.
func NewBlobOpener(from *io.SectionReader, key *BlobKey) *BlobOpener {
	return &BlobOpener{
		blobCipher: newBlobCipher(key), from: from,
		chunk: make([]byte, blobChunk+blobOverhead), plain: make([]byte, 0, blobChunk),
	}
}

// Read implements [io.Reader].
func (o *BlobOpener) Read(p []byte) (int, error) {
	if len(o.rest) == 0 {
		if err := o.open(); err != nil {
			return 0, err
		}
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// open opens the next chunk.
func (o *BlobOpener) open() error {
	at, _ := o.from.Seek(0, io.SeekCurrent) // a section can tell where it is
	left := o.from.Size() - at
	if left <= 0 {
		return io.EOF
	}
	chunk := o.chunk[:min(left, int64(len(o.chunk)))]
	if _, err := io.ReadFull(o.from, chunk); err != nil {
		return io.ErrUnexpectedEOF
	}
	plain, err := o.aead.Open(o.plain[:0], nil, chunk, o.next(left == int64(len(chunk))))
	if err != nil {
		return DamagedBlob("cannot be opened with the key in its record")
	}
	o.rest = plain
	return nil
}

// DamagedBlob says how the bytes of a blob are not those that were written.
type DamagedBlob string

// Error implements error.
func (d DamagedBlob) Error() string { return "reprise: the blob " + string(d) }
