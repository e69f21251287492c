package repriseredis

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// Where the nodes of a cluster are unknown, no command was sent.
func TestUnknownClusterDidNotExecute(t *testing.T) {
	t.Parallel()
	unknown := &net.OpError{Op: "dial", Err: errors.New("nobody is there")}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true, MaxRedirects: -1,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return nil, unknown },
	})
	t.Cleanup(func() { _ = client.Close() })
	s := over(t, client, Config{})
	t.Cleanup(func() { _ = s.Close() })
	ctx, id := t.Context(), store.ID{}
	for name, call := range map[string]func() error{
		"claim":   func() error { _, err := claim(t, s); return err },
		"inspect": func() error { _, err := s.Inspect(ctx, id); return err },
		"watch":   func() error { _, _, err := s.Watch(ctx, id); return err },
		"list":    func() error { _, err := s.List(ctx, store.Query{Limit: 1}); return err },
		"check":   func() error { _, err := s.Check(ctx); return err },
		"probe":   func() error { return s.probe(ctx) },
	} {
		if err := call(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
}
