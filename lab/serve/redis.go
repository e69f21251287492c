package serve

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// openRedis opens the store in Redis or Valkey.
func openRedis(ctx context.Context, b *Backend, o StoreOptions) error {
	client, err := redisClient(o)
	if err != nil {
		return err
	}
	b.closers = append(b.closers, func() { _ = client.Close() })
	if o.RedisHook != nil {
		client.AddHook(o.RedisHook)
	}
	if err := client.Ping(ctx).Err(); err != nil {
		return err
	}
	c := repriseredis.Config{Prefix: cmp.Or(o.RedisPrefix, "reprise:"), NoCombining: o.NoCombining}
	if o.Acked > 0 {
		c.Durability = repriseredis.Acked(o.Acked)
	}
	store, err := repriseredis.New(client, c)
	b.Store = store
	return err
}

// redisClient makes the client that the form of the URL asks for: "master_name" is of
// Sentinels, "addr" of a Cluster.
func redisClient(o StoreOptions) (redis.UniversalClient, error) {
	if o.RedisURL == "" {
		return nil, errors.New("needs -redis-url")
	}
	u, err := url.Parse(o.RedisURL)
	if err != nil {
		return nil, errors.New("the URL of Redis cannot be read") // it may hold a password
	}
	switch query := u.Query(); {
	case strings.HasPrefix(u.Scheme, "redis") && query.Has("master_name"):
		c, err := redis.ParseFailoverURL(o.RedisURL)
		if err != nil {
			return nil, err
		}
		c.PoolSize, c.ContextTimeoutEnabled = o.Pool, true
		return redis.NewFailoverClient(c), nil
	case strings.HasPrefix(u.Scheme, "redis") && query.Has("addr"):
		c, err := redis.ParseClusterURL(o.RedisURL)
		if err != nil {
			return nil, err
		}
		c.PoolSize, c.ContextTimeoutEnabled = o.Pool, true
		// The clients of the nodes share it, and each changes it under its own lock.
		c.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return redis.NewClusterClient(c), nil
	default:
		c, err := redis.ParseURL(o.RedisURL)
		if err != nil {
			return nil, err
		}
		c.PoolSize, c.ContextTimeoutEnabled = o.Pool, true
		return redis.NewClient(c), nil
	}
}
