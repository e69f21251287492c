package record

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

// In any record, the name of a blob is a day and a digest: it leaves no folder and no
// prefix.
func TestNoRecordNamesAnythingButABlob(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[0-9]{8}/[0-9a-f]{64}$`)
	random, read := rand.New(rand.NewPCG(1, 2)), 0
	for range 10_000 {
		ref := make([]byte, blobSize+random.IntN(2)*blobKeySize)
		for i := range ref {
			ref[i] = byte(random.Uint32())
		}
		if ref[0] = blobVersion; len(ref) > blobSize {
			ref[0] = blobSealed
		}
		copy(ref[1:], []byte{0, 0, 0, 0, byte(random.Uint32())}) // some sizes are within the limit
		copy(ref[41:], []byte{0, byte(random.IntN(64))})         // and some days
		if b, ok := decodeBlob(ref); ok {
			read++
			if got := b.Name(); !name.MatchString(got) {
				t.Fatalf("the reference %x names %q", ref, got)
			}
		}
	}
	if read < 100 {
		t.Errorf("%d of the references were read", read)
	}
}

// A record may refer to a blob of 1 byte to 1 TiB, written until the year 9999. The size
// of a sealed blob is one that sealing can have made.
func TestReferencesToBlobsAreBounded(t *testing.T) {
	t.Parallel()
	const largest = MaxBlob + MaxBlob/blobChunk*blobOverhead // of a sealed blob
	for _, c := range []struct {
		name   string
		sealed bool
		size   int64
		day    int
		ok     bool
	}{
		{"one byte", false, 1, 0, true},
		{"none", false, 0, 0, false},
		{"less than none", false, -1, 0, false},
		{"1 TiB", false, MaxBlob, 0, true},
		{"more than 1 TiB", false, MaxBlob + 1, 0, false},
		{"the last day", false, 1, lastDay, true},
		{"the day after", false, 1, lastDay + 1, false},
		{"sealed, one byte", true, blobOverhead + 1, 0, true},
		{"sealed, none", true, 0, 0, false},
		{"sealed, less than none", true, -1, 0, false},
		{"sealed, no byte in it", true, blobOverhead, 0, false},
		{"sealed, less than its nonce and tag", true, 1, 0, false},
		{"sealed, a full chunk", true, blobChunk + blobOverhead, 0, true},
		{"sealed, an empty chunk after it", true, blobChunk + 2*blobOverhead, 0, false},
		{"sealed, 1 TiB", true, largest, 0, true},
		{"sealed, more than 1 TiB", true, largest + blobOverhead + 1, 0, false},
		{"sealed, more than a number can be", true, 1<<63 - 1, 0, false},
	} {
		b := Blob{Size: c.size, Day: c.day}
		if c.sealed {
			b.Key = &BlobKey{1, 2, 3}
		}
		encoded := b.append(nil)
		got, ok := decodeBlob(encoded)
		if ok != c.ok || len(encoded) != b.size() || ok && (got.Size != c.size || got.Day != c.day || (got.Key != nil) != c.sealed || c.sealed && *got.Key != *b.Key) {
			t.Errorf("%s: %+v, %t, want %t", c.name, got, ok, c.ok)
		}
	}
}
