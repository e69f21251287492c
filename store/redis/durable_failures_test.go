package repriseredis

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
)

// panicking is a hook of a client that panics before or after a pipeline of scripts.
type panicking struct{ before bool }

func (panicking) DialHook(next redis.DialHook) redis.DialHook { return next }

func (panicking) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p panicking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() != "evalsha" {
			return next(ctx, commands)
		}
		if !p.before {
			_ = next(ctx, commands)
		}
		panic("hook")
	}
}

// A hook of the client that panics confirms nothing, panics in the calls of its batch
// only, as it does in one that is sent alone, and keeps neither a lane nor a connection.
func TestAPanicConfirmsNothing(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		f := confirming(t, bulk("D"), ":1\r\n")
		client := newClient(t, f, func(o *redis.Options) { o.PoolSize = 1 })
		client.AddHook(panicking{before})
		s, err := New(client, Config{Prefix: servicePrefix, Durability: Acked(1)})
		if err != nil {
			t.Fatal(err)
		}
		complete := func() (p any) {
			defer func() { p = recover() }()
			return s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}})
		}
		for range 3 {
			if p, panicked := complete().(*batching.PanicError); !panicked || p.Value != "hook" {
				t.Errorf("complete: %v, want the panic of the hook", p)
			}
		}
		if stats := client.PoolStats(); stats.TotalConns != stats.IdleConns {
			t.Errorf("%d of %d connections are lost", stats.TotalConns-stats.IdleConns, stats.TotalConns)
		}
		if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err == nil {
			t.Error("a release was answered D")
		}
	}
}
