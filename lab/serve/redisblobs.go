package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/protocol"
)

// RedisBlobs keeps response bodies in Redis, for a store that keeps the records where
// large values do not belong. Redis may lose them: then their retries get 409
// result-unavailable, and no operation runs again.
type RedisBlobs struct {
	client redis.UniversalClient
	prefix string        // of every key
	age    time.Duration // how long a body is kept: longer than every record
}

var _ protocol.BlobStore = (*RedisBlobs)(nil)

// OpenRedisBlobs returns blobs at the Redis of o, and the function that lets go of its
// connections. Each is kept for age.
func OpenRedisBlobs(ctx context.Context, o StoreOptions, age time.Duration) (*RedisBlobs, func(), error) {
	client, err := redisClient(o)
	if err != nil {
		return nil, nil, err
	}
	closes := func() { _ = client.Close() }
	if err := client.Ping(ctx).Err(); err != nil {
		closes()
		return nil, nil, err
	}
	return &RedisBlobs{client: client, prefix: o.RedisPrefix + "blob:", age: age}, closes, nil
}

// Put implements [protocol.BlobStore]. The body is one value, at most 512 MiB.
func (b *RedisBlobs) Put(ctx context.Context, name string, body *io.SectionReader) error {
	value := make([]byte, body.Size())
	if _, err := body.ReadAt(value, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return b.client.Set(ctx, b.prefix+name, value, b.age).Err()
}

// Open implements [protocol.BlobStore].
func (b *RedisBlobs) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	value, err := b.client.Get(ctx, b.prefix+name).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("%w: %q", protocol.ErrNoBlob, name)
	}
	return io.NopCloser(bytes.NewReader(value)), err
}
