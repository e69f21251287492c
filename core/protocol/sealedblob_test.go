package protocol

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"testing"
)

// sealBlob seals a body, written in pieces.
func sealBlob(tb testing.TB, body []byte, piece int) (sealed []byte, key blobKey) {
	tb.Helper()
	s := newBlobSealer()
	out := func(p []byte) error { sealed = append(sealed, p...); return nil }
	for rest := body; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
		if err := s.write(rest[:min(piece, len(rest))], out); err != nil {
			tb.Fatal(err)
		}
	}
	for range 2 { // the second one does nothing
		if err := s.end(out); err != nil {
			tb.Fatal(err)
		}
	}
	return sealed, s.key
}

func openBlob(sealed []byte, key *blobKey) ([]byte, error) {
	return io.ReadAll(newBlobOpener(io.NewSectionReader(bytes.NewReader(sealed), 0, int64(len(sealed))), key))
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
			if plain, ok := sealedBlobSize(int64(len(sealed))); !ok || plain != int64(size) {
				t.Errorf("%d are sealed in %d, which are said to have %d, %t", size, len(sealed), plain, ok)
			}
		}
	}
	for _, size := range []int64{1, blobOverhead, blobChunk + blobOverhead + 1, blobChunk + 2*blobOverhead} {
		if _, ok := sealedBlobSize(size); ok {
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
		var damaged damagedBlob
		if !errors.As(err, &damaged) {
			t.Errorf("a blob %s opens as %d bytes, %v", name, len(got), err)
		}
		if !bytes.HasPrefix(body, got) {
			t.Errorf("a blob %s opens as other bytes than were sealed", name)
		}
	}
}

// What is in the temporary file is what is in the blob store.
func TestSealedSpoolIsEncrypted(t *testing.T) {
	t.Parallel()
	s, err := newSpool(&Guard{cfg: Config{Offload: Offloading{Dir: t.TempDir(), MaxSpool: 1 << 20}}}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.encrypt()
	body := bytes.Repeat([]byte("private "), 20_000)
	if _, err := s.Write(body); err != nil {
		t.Fatal(err)
	}
	ref, err := s.ref()
	if err != nil || ref.length() != int64(len(body)) || s.length() != ref.length() {
		t.Fatalf("%+v, %v", ref, err)
	}
	file, err := io.ReadAll(s.section(t.Context()))
	if err != nil || int64(len(file)) != ref.Size || bytes.Contains(file, []byte("private")) {
		t.Errorf("the file has %d bytes, %v", len(file), err)
	}
	encoded := ref.append(nil)
	again, ok := decodeBlobRef(encoded)
	if !ok || again.SHA256 != ref.SHA256 || again.Size != ref.Size || *again.key != *ref.key || len(encoded) != ref.size() {
		t.Errorf("decoded %+v, %t", again, ok)
	}
	for _, bad := range [][]byte{encoded[:len(encoded)-1], append(slices.Clone(encoded), 0), append([]byte{blobRefVersion}, encoded[1:]...), append([]byte{3}, encoded[1:]...)} {
		if _, ok := decodeBlobRef(bad); ok {
			t.Errorf("%x is a reference", bad)
		}
	}
	huge := slices.Clone(encoded)
	copy(huge[1:], bytes.Repeat([]byte{0x7f}, 8))
	if _, ok := decodeBlobRef(huge); ok {
		t.Error("2^62 bytes are a blob")
	}
	got, err := io.ReadAll(s.body())
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("the body has %d bytes, %v", len(got), err)
	}
}

// A blob has the layout that sealedblob.go describes, made here with the standard library
// alone. The buckets of running deployments are full of it.
func TestSealedBlobHasItsLayout(t *testing.T) {
	t.Parallel()
	key := blobKey{7, 31: 9}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
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

// The files of a guard are within MaxSpool together, which is included.
func TestSpoolsHaveTheirRoom(t *testing.T) {
	t.Parallel()
	g := &Guard{cfg: Config{Offload: Offloading{Dir: t.TempDir(), MaxSpool: 100}}}
	open := func() *spool {
		s, err := newSpool(g, 1000)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	first, second := open(), open()
	if _, err := first.Write(make([]byte, 60)); err != nil {
		t.Error(err)
	}
	if _, err := second.Write(make([]byte, 40)); err != nil {
		t.Errorf("the last byte: %v", err)
	}
	if _, err := second.Write(make([]byte, 1)); !errors.Is(err, errSpoolFull) || g.spooled.Load() != 60 {
		t.Errorf("a byte more: %v, and %d bytes are counted", err, g.spooled.Load())
	}
	first.Close()
	third := open()
	if _, err := third.Write(make([]byte, 100)); err != nil {
		t.Errorf("after that: %v", err)
	}
	if _, err := open().Write(make([]byte, 1)); !errors.Is(err, errSpoolFull) {
		t.Errorf("a byte more: %v", err)
	}
}

// A spool removes its own file and no other: where its file has no name any more, the
// name may be another process's.
func TestSpoolRemovesItsOwnFile(t *testing.T) {
	t.Parallel()
	g := &Guard{cfg: Config{Offload: Offloading{Dir: t.TempDir(), MaxSpool: 100}}}
	s, err := newSpool(g, 100)
	if err != nil {
		t.Fatal(err)
	}
	name := s.file.Name()
	switch {
	case s.name == "":
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if _, err := os.Stat(name); err != nil {
			t.Errorf("the file of another is gone: %v", err)
		}
	case runtime.GOOS != "windows": // which does not remove a file that is open
		t.Errorf("the file still has the name %s", name)
	}
	if s, err = newSpool(g, 100); err != nil {
		t.Fatal(err)
	}
	s.name = name // as where open files cannot be removed
	s.Close()
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// noBlobs is a blob store that is never called.
type noBlobs struct{ BlobStore }

// A body that may be offloaded grows in few steps, up to what records keep.
func TestBodiesThatMayBeOffloadedGrowInFewSteps(t *testing.T) {
	t.Parallel()
	grow := func(cfg Config, size int) (steps, room int) {
		g, body := &Guard{cfg: cfg}, []byte(nil)
		piece := make([]byte, 1000)
		for len(body) < size {
			before := cap(body)
			if body = append(g.room(body, len(piece)), piece...); cap(body) != before {
				steps++
			}
		}
		return steps, cap(body)
	}
	const limit = 1 << 20
	plain, _ := grow(Config{Limits: Limits{ResponseBody: limit}}, limit-1000)
	offloading := Config{Limits: Limits{ResponseBody: limit}, Offload: Offloading{Blobs: noBlobs{}}}
	offloads, room := grow(offloading, limit-1000)
	if offloads > 8 || plain < 2*offloads || room > limit+limit/4 {
		t.Errorf("grew in %d steps to %d bytes; a body that is not offloaded grew in %d", offloads, room, plain)
	}
	if body := (&Guard{cfg: offloading}).room(nil, copyBuffer/8); body != nil {
		t.Errorf("a small body has room for %d bytes", cap(body))
	}
	if body := (&Guard{cfg: offloading}).room(nil, 2*limit); cap(body) < 2*limit {
		t.Errorf("a large piece has room for %d bytes", cap(body))
	}
}

// Large buffers go back to the collector.
func TestLargeBuffersAreNotKept(t *testing.T) {
	t.Parallel()
	for size, kept := range map[int]bool{0: true, 256 << 10: true, 256<<10 + 1: false} {
		if got := again(make([]byte, size)); (got != nil) != kept || len(got) != 0 {
			t.Errorf("of %d bytes, %d are kept", size, cap(got))
		}
	}
}
