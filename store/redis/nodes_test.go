package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

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

// go-redis keeps the connection unless the first command of a pipeline was refused.
func TestAServerThatWasDemotedWithinAPipelineLosesItsConnection(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(conn, call int, _ []string) string {
		if conn == 1 && call == 2 {
			return "-READONLY You can't write against a read only replica.\r\n"
		}
		return bulk("W")
	})
	batch := make([]store.RenewRequest, 3)
	for i := range batch {
		batch[i] = store.RenewRequest{ID: store.ID{byte(i)}, Owner: store.Owner{1}, Lease: time.Second}
	}
	got, err := newStore(t, f, Config{}).Renew(t.Context(), batch)
	if err != nil || fmt.Sprint(got) != "[renewed renewed renewed]" {
		t.Errorf("renew = %v, %v", got, err)
	}
	if f.seen() != "1 evalsha, 1 evalsha, 1 evalsha, 2 evalsha" {
		t.Errorf("sent %q; want the repetition on another connection", f.seen())
	}
}
