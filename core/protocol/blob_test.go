package protocol

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

// Whatever a record says, the name of its blob is a day and a digest: it leaves no folder
// and no prefix.
func TestNoRecordNamesAnythingButABlob(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[0-9]{8}/[0-9a-f]{64}$`)
	random, read := rand.New(rand.NewPCG(1, 2)), 0
	for range 10_000 {
		ref := make([]byte, blobRefSize+random.IntN(2)*blobKeySize)
		for i := range ref {
			ref[i] = byte(random.Uint32())
		}
		if ref[0] = blobRefVersion; len(ref) > blobRefSize {
			ref[0] = blobRefSealed
		}
		copy(ref[1:], []byte{0, 0, 0, 0, byte(random.Uint32())}) // some sizes are within the limit
		copy(ref[41:], []byte{0, byte(random.IntN(64))})         // and some days
		if b, ok := decodeBlobRef(ref); ok {
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
