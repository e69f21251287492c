package reprisecompress

import (
	"errors"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/reprise-go/reprise/core/protocol"
)

// A Compressor compresses with zstd (RFC 8878). Make one with [New] and share it: it
// holds buffers for each processor, which it allocates on first use. It is safe for
// concurrent use.
type Compressor struct {
	coders func() coders
}

type coders struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

var _ protocol.Compressor = (*Compressor)(nil)

// errTooLarge says that a frame has more than it may have.
var errTooLarge = errors.New("reprisecompress: more than the limit, or not a frame of its own")

// New returns a Compressor for [protocol.Sealing].
func New() *Compressor {
	return &Compressor{coders: sync.OnceValue(func() coders {
		// The cipher authenticates what is compressed, so it needs no checksum of its own.
		encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true))
		if err != nil {
			panic(err) // never: the options are constants
		}
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			panic(err) // never, as above
		}
		return coders{encoder, decoder}
	})}
}

// AppendCompressed implements [protocol.Compressor].
func (c *Compressor) AppendCompressed(dst, src []byte) []byte {
	return c.coders().encoder.EncodeAll(src, dst)
}

// AppendDecompressed implements [protocol.Compressor]. It never takes memory for more
// than limit bytes, whatever a frame says of its size.
func (c *Compressor) AppendDecompressed(dst, src []byte, limit int) ([]byte, error) {
	var header zstd.Header
	if err := header.Decode(src); err != nil {
		return dst, err
	}
	if header.Skippable || header.HasFCS && header.FrameContentSize > uint64(max(limit, 0)) {
		return dst, errTooLarge
	}
	n := len(dst)
	dst = slices.Grow(dst, max(limit, 0))[: n : n+max(limit, 0)]
	out, err := c.coders().decoder.DecodeAll(src, dst)
	if err != nil || len(out)-n > limit {
		return dst[:n], errors.Join(err, errTooLarge)
	}
	return out, nil
}
