package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/store"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisRecords are records in Redis.
type redisRecords struct {
	*repriseredis.Store

	client      *redis.Client
	url, prefix string
}

// openRedis opens the records in the Redis of a URL.
func openRedis(ctx context.Context, url, prefix string) (*redisRecords, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	store, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: prefix})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &redisRecords{store, client, url, prefix}, nil
}

func (r *redisRecords) flags() []string { return []string{"-redis-url", r.url, "-prefix", r.prefix} }

func (r *redisRecords) spoil(ctx context.Context, id store.ID) error {
	key := r.prefix + "{" + string(id[:]) + "}" // the layout of an ID that does not start with a brace
	return r.client.Set(ctx, key, "of another release", time.Hour).Err()
}

func (r *redisRecords) Close() error {
	return errors.Join(r.Store.Close(), r.client.Close())
}
