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

func TestUsageCountsConnectionsInUse(t *testing.T) {
	t.Parallel()
	client := newClient(t, newFake(t, func(_, _ int, _ []string) string { return claimed }))
	s := over(t, client, Config{})
	held := client.Conn()
	for used := int64(1); used >= 0; used-- {
		if used == 0 {
			_ = held.Close()
		} else if err := held.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if got := s.Usage(); len(got) != 1 || got[0].Name != "connections" || got[0].Used != used {
			t.Errorf("usage %v, want %d connections", got, used)
		}
	}
}

// Close leaves the client to its owner, who may close it, too.
func TestTheClientStaysTheCallers(t *testing.T) {
	t.Parallel()
	client := newClient(t, newFake(t, func(_, _ int, _ []string) string { return claimed }))
	s := over(t, client, Config{})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := claim(t, s); err != nil {
		t.Errorf("claim after Close: %v", err)
	}
	if _, _, err := s.Watch(t.Context(), store.ID{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("watch after Close: %v, want ErrClosed", err)
	}
	_ = client.Close()
	if _, err := claim(t, s); !errors.Is(err, store.ErrClosed) {
		t.Errorf("claim over a closed client: %v, want ErrClosed", err)
	}
}

// The first entry only waits for its script to be sent; the second is why no more is
// sent in time.
func TestAnEntryThatWasNotSentAgainHasFailed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := newFake(t, func(_, call int, _ []string) string {
		if call == 1 {
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		}
		cancel()
		return "-LOADING Redis is loading the dataset in memory\r\n"
	})
	client := redis.NewClient(&redis.Options{Addr: f.Addr, Protocol: 2, DisableIdentity: true}) // reads on after the cancellation
	t.Cleanup(func() { _ = client.Close() })
	batch := []store.RenewRequest{{ID: store.ID{1}, Owner: store.Owner{1}, Lease: time.Second}, {ID: store.ID{2}, Owner: store.Owner{1}, Lease: time.Second}}
	s := over(t, client, Config{})
	if got, err := s.Renew(ctx, batch); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("renew = %v, %v; want ErrUnavailable", got, err)
	}
}

// One entry that cannot be renewed must not keep the others from it, and an answer stays
// that of its call when the connection breaks behind it. go-redis keeps the connection of
// a server that was demoted unless the first command of a pipeline was refused.
func TestABatchOfRenewals(t *testing.T) {
	t.Parallel()
	const busy, demoted = "-BUSY Redis is busy\r\n", "-READONLY You can't write against a read only replica.\r\n"
	for _, c := range []struct {
		name    string
		answers []string // to the first calls; later ones get the last
		want    string
		err     error
		sent    string
	}{
		{"each its own", []string{bulk("W"), bulk("!"), bulk("F"), bulk("X"), busy}, "[renewed busy completed lost busy]", nil, ""},
		{"none", []string{busy, busy}, "[]", store.ErrUnavailable, ""},
		{"cut", []string{bulk("W"), bulk("W"), cut, bulk("W")}, "[renewed renewed renewed]", nil, "1 evalsha, 1 evalsha, 1 evalsha, 2 evalsha"},
		{"demoted", []string{bulk("W"), demoted, bulk("W"), bulk("W")}, "[renewed renewed renewed]", nil, "1 evalsha, 1 evalsha, 1 evalsha, 2 evalsha"},
	} {
		f := newFake(t, func(_, call int, _ []string) string { return c.answers[min(call, len(c.answers))-1] })
		batch := make([]store.RenewRequest, len(c.answers))
		if c.sent != "" {
			batch = batch[1:]
		}
		for i := range batch {
			batch[i] = store.RenewRequest{ID: store.ID{byte(i)}, Owner: store.Owner{1}, Lease: time.Second}
		}
		got, err := newStore(t, f, Config{}).Renew(t.Context(), batch)
		if !errors.Is(err, c.err) || fmt.Sprint(got) != c.want || c.err != nil && got != nil {
			t.Errorf("%s: renew = %v, %v; want %s, %v", c.name, got, err, c.want, c.err)
		}
		if c.sent != "" && f.seen() != c.sent {
			t.Errorf("%s: sent %q, want only one again, on another connection", c.name, f.seen())
		}
	}
}

// The repetition of a resolution finds a record that has changed: the lost first one may
// have done it.
func TestAResolutionWhoseReplyWasLostIsUnknown(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]error{
		cut:                                 store.ErrUnknown,
		"-LOADING\r\n":                      store.ErrRecordChanged,
		"-NOSCRIPT No matching script.\r\n": store.ErrRecordChanged,
	} {
		f := newFake(t, func(_, call int, _ []string) string {
			if call == 1 {
				return first
			}
			return bulk("N")
		})
		err := newStore(t, f, Config{}).Resolve(t.Context(), store.ID{}, store.Resolution{Fence: 1, Forget: true})
		if !errors.Is(err, want) {
			t.Errorf("after %q: %v, want %v", first, err, want)
		}
	}
}

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
