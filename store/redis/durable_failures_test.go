package repriseredis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// panicking is a hook of a client that panics after a pipeline that starts with the
// command it names.
type panicking string

func (panicking) DialHook(next redis.DialHook) redis.DialHook { return next }

func (panicking) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (name panicking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		if commands[0].Name() == string(name) {
			panic("hook")
		}
		return err
	}
}

// A hook of the client that panics confirms nothing, ends the calls of its batch only,
// and keeps neither a lane nor a connection.
func TestAPanicConfirmsNothing(t *testing.T) {
	t.Parallel()
	f := confirming(t, bulk("D"), ":1\r\n")
	client := newClient(t, f, func(o *redis.Options) { o.PoolSize = 1 })
	client.AddHook(panicking("evalsha"))
	s, err := New(client, Config{Prefix: servicePrefix, Durability: Acked(1)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		err := s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}})
		if !errors.Is(err, store.ErrUnknown) {
			t.Errorf("complete: %v, want ErrUnknown", err)
		}
	}
	if stats := client.PoolStats(); stats.TotalConns != stats.IdleConns {
		t.Errorf("%d of %d connections are lost", stats.TotalConns-stats.IdleConns, stats.TotalConns)
	}
	if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err == nil {
		t.Error("a release was answered D")
	}
}
