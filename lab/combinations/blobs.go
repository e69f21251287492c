package combinations

import (
	"bytes"
	"context"
	"io"
	"maps"
	"sync"

	"github.com/reprise-go/reprise/core/protocol"
)

// blobs is a [protocol.BlobStore] in memory.
type blobs struct {
	mu   sync.Mutex
	kept map[string]string
}

func newBlobs() *blobs { return &blobs{kept: map[string]string{}} }

func (b *blobs) Put(_ context.Context, name string, body *io.SectionReader) error {
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[name] = string(content)
	return nil
}

func (b *blobs) Open(_ context.Context, name string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, ok := b.kept[name]
	if !ok {
		return nil, protocol.ErrNoBlob
	}
	return io.NopCloser(bytes.NewReader([]byte(content))), nil
}

func (b *blobs) all() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.kept)
}
