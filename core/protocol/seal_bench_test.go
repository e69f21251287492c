package protocol

import (
	"bytes"
	"testing"

	"github.com/reprise-go/reprise/core/protocol/internal/record"
)

// A sealed answer costs a derivation, a key schedule and a pass over its bytes, once when
// it is recorded and once for each replay. docs/engineering/adr/0016-sealed-answers.md
// has a run.
func BenchmarkSealedAnswer(b *testing.B) {
	for _, size := range []int{256, 16 << 10, 1 << 20} {
		s := stored{Status: 201, Body: bytes.Repeat([]byte("x"), size), Fields: []Field{{Name: "Content-Type", Value: "application/json"}}}
		encoded := record.Append(nil, &s)
		seal := Sealing{Secret: testSecret(b, "1")}
		sealed := seal.appendSealed(nil, encoded, &testSealedFor)
		b.Run(sizeName(size)+"/seal", func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = seal.appendSealed(dst[:0], encoded, &testSealedFor)
			}
		})
		b.Run(sizeName(size)+"/open", func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := seal.open(sealed, &testSealedFor); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func sizeName(n int) string {
	switch {
	case n >= 1<<20:
		return "1MiB"
	case n >= 16<<10:
		return "16KiB"
	default:
		return "256B"
	}
}
