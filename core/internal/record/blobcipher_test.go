package record

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
)

// sealBlob seals a body, written in pieces.
func sealBlob(tb testing.TB, body []byte, piece int) (sealed []byte, key BlobKey) {
	tb.Helper()
	s := NewBlobSealer()
	out := func(p []byte) error { sealed = append(sealed, p...); return nil }
	for rest := body; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
		if err := s.Write(rest[:min(piece, len(rest))], out); err != nil {
			tb.Fatal(err)
		}
	}
	for range 2 { // the second one is a no-op
		if err := s.End(out); err != nil {
			tb.Fatal(err)
		}
	}
	return sealed, *s.Key()
}

func openBlob(sealed []byte, key *BlobKey) ([]byte, error) {
	return io.ReadAll(NewBlobOpener(io.NewSectionReader(bytes.NewReader(sealed), 0, int64(len(sealed))), key))
}

func TestSealedBlobComesBack(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 100, blobChunk - 1, blobChunk, blobChunk + 1, 3 * blobChunk, 3*blobChunk + 17} {
		for _, piece := range []int{7919, blobChunk, 10 * blobChunk} {
			body := unhexed(size)
			sealed, key := sealBlob(t, body, piece)
			got, err := openBlob(sealed, &key)
			if err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d in pieces of %d: %d bytes, %v", size, piece, len(got), err)
			}
			if plain, ok := plainBlobSize(int64(len(sealed))); !ok || plain != int64(size) || SealedBlobSize(plain) != int64(len(sealed)) {
				t.Errorf("%d are sealed in %d, which are said to have %d, %t", size, len(sealed), plain, ok)
			}
		}
	}
	for _, size := range []int64{1, blobOverhead, blobChunk + blobOverhead + 1, blobChunk + 2*blobOverhead} {
		if _, ok := plainBlobSize(size); ok {
			t.Errorf("%d bytes are taken for a sealed blob", size)
		}
	}
}

// The digest in the record finds every change before a byte leaves. The chunks find it
// again while they are read.
func TestSealedBlobThatWasChangedDoesNotOpen(t *testing.T) {
	t.Parallel()
	const whole = blobChunk + blobOverhead
	body := unhexed(3*blobChunk + 100)
	sealed, key := sealBlob(t, body, blobChunk)
	other, _ := sealBlob(t, body, blobChunk)
	chunk := func(n int) []byte { return sealed[n*whole : min((n+1)*whole, len(sealed))] }
	for name, changed := range map[string][]byte{
		"without its last chunk":     sealed[:3*whole],
		"with its last chunk cut":    sealed[:len(sealed)-1],
		"cut within a tag":           sealed[:3*whole+10],
		"without its first chunk":    sealed[whole:],
		"without a chunk":            slices.Concat(chunk(0), chunk(2), chunk(3)),
		"with two chunks exchanged":  slices.Concat(chunk(1), chunk(0), chunk(2), chunk(3)),
		"with a chunk twice":         slices.Concat(chunk(0), chunk(0), chunk(2), chunk(3)),
		"longer by a chunk":          slices.Concat(sealed, chunk(0)),
		"longer by its last chunk":   slices.Concat(sealed, chunk(3)),
		"longer by a byte":           append(slices.Clone(sealed), 0),
		"with a bit changed":         func() []byte { b := slices.Clone(sealed); b[whole+5] ^= 1; return b }(),
		"with a chunk of another":    slices.Concat(other[:whole], sealed[whole:]),
		"that is another, of a body": other,
	} {
		got, err := openBlob(changed, &key)
		var damaged DamagedBlob
		if !errors.As(err, &damaged) {
			t.Errorf("a blob %s opens as %d bytes, %v", name, len(got), err)
		}
		if !bytes.HasPrefix(body, got) {
			t.Errorf("a blob %s opens as other bytes than were sealed", name)
		}
	}
}

// A blob has the layout that blobcipher.go describes, made here with the standard library
// alone. The buckets of running deployments are full of it.
func TestSealedBlobHasItsLayout(t *testing.T) {
	t.Parallel()
	key := BlobKey{7, 31: 9}
	aead := must(cipher.NewGCM(must(aes.NewCipher(key[:]))))
	body := unhexed(2*blobChunk + 5)
	var sealed []byte
	for n, rest := 0, body; len(rest) > 0; n++ {
		size := min(len(rest), 64<<10)
		associated := binary.BigEndian.AppendUint64([]byte("reprise/blob/1\x00"), uint64(n))
		associated = append(associated, map[bool]byte{true: 1, false: 0}[size == len(rest)])
		nonce := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, byte(n)}
		sealed = append(sealed, nonce...)
		sealed = aead.Seal(sealed, nonce, rest[:size], associated)
		rest = rest[size:]
	}
	if got, err := openBlob(sealed, &key); err != nil || !bytes.Equal(got, body) {
		t.Errorf("opened as %d bytes, %v", len(got), err)
	}
}

// unhexed returns n bytes without a pattern.
func unhexed(n int) []byte {
	b := make([]byte, n)
	x := uint64(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return b
}
