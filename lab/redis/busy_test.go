package redis

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The server answers, and the pool has no connection for the call: that is definite, and
// another failure than a server out of reach.
func TestRedisAnExhaustedPoolIsBusy(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t)
	for name, pool := range map[string]redis.Options{
		"the pool gives up first": {PoolTimeout: 50 * time.Millisecond},
		"the call gives up first": {PoolTimeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool.Addr, pool.PoolSize = server.Addr(), 2
			client := redis.NewClient(redisOnePool(&pool))
			t.Cleanup(func() { _ = client.Close() })
			st := labtest.RedisStore(t, client, repriseredis.Config{})
			r := labtest.NewClaim()
			held, other := client.Conn(), client.Conn()
			labtest.Want(t, "hold a connection", held.Ping(t.Context()).Err(), nil)
			labtest.Want(t, "hold the other", other.Ping(t.Context()).Err(), nil)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err := st.Claim(ctx, r)
			labtest.Want(t, "claim", err, store.ErrBusy)
			labtest.Want(t, "return a connection", held.Close(), nil)
			labtest.Want(t, "return the other", other.Close(), nil)
			labtest.WantClaim(t, st, r, store.Claimed)
		})
	}
}

// A server that takes no connection leaves the pool room.
func TestRedisADialThatHangsIsNotBusy(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", PoolSize: 1, Dialer: func(context.Context, string, string) (net.Conn, error) {
		<-t.Context().Done()
		return nil, t.Context().Err()
	}})
	t.Cleanup(func() { _ = client.Close() })
	st := labtest.RedisStore(t, client, repriseredis.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := st.Claim(ctx, labtest.NewClaim())
	labtest.Want(t, "claim", err, store.ErrUnavailable)
}
