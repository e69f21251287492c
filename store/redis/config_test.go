package repriseredis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/pipeline"
)

func TestTheConstructorRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	single := func(o redis.Options) redis.UniversalClient {
		o.Addr = "127.0.0.1:1"
		return redis.NewClient(&o)
	}
	cluster := func(o redis.ClusterOptions) redis.UniversalClient {
		o.Addrs = []string{"127.0.0.1:1"}
		return redis.NewClusterClient(&o)
	}
	invalid, misconfigured := store.ErrInvalid, store.ErrMisconfigured
	for _, c := range []struct {
		name   string
		client redis.UniversalClient
		config Config
		want   error
		says   string // part of the error
	}{
		{"the zero config", single(redis.Options{}), Config{}, nil, ""},
		{"everything set", single(redis.Options{ReadTimeout: 5 * time.Second}), Config{Prefix: "p:", Durability: Acked(2), AckTimeout: 4 * time.Second}, nil, ""},
		{"a cluster", cluster(redis.ClusterOptions{}), Config{Durability: Fsynced(0)}, nil, ""},
		{"Sentinel", redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}}), Config{}, nil, ""},
		{"no read timeout but contexts", single(redis.Options{ReadTimeout: -1, ContextTimeoutEnabled: true}), Config{}, nil, ""},

		{"the longest prefix", single(redis.Options{}), Config{Prefix: strings.Repeat("p", 128)}, nil, ""},
		{"the most replicas", single(redis.Options{}), Config{Durability: Acked(64)}, nil, ""},
		{"the shortest wait", single(redis.Options{}), Config{AckTimeout: 10 * time.Millisecond}, nil, ""},
		{"the longest wait, which nothing is waited for", single(redis.Options{}), Config{AckTimeout: 10 * time.Second}, nil, ""},
		{"a wait and no read timeout", single(redis.Options{ReadTimeout: -1, ContextTimeoutEnabled: true}), Config{Durability: Acked(1)}, nil, ""},

		{"no client", nil, Config{}, invalid, "client is nil"},
		{"a nil client", (*redis.Client)(nil), Config{}, invalid, "client is nil"},
		{"a nil cluster client", (*redis.ClusterClient)(nil), Config{}, invalid, "client is nil"},
		{"a wait that is too short", single(redis.Options{}), Config{AckTimeout: time.Millisecond}, invalid, "AckTimeout"},
		{"a negative wait", single(redis.Options{}), Config{AckTimeout: -1}, invalid, "AckTimeout"},
		{"a wait that is too long", single(redis.Options{}), Config{AckTimeout: time.Hour}, invalid, "AckTimeout"},
		{"a negative number of replicas", single(redis.Options{}), Config{Durability: Acked(-1)}, invalid, "Durability"},
		{"no replica to wait for", single(redis.Options{}), Config{Durability: Acked(0)}, invalid, "Durability"},
		{"too many replicas", single(redis.Options{}), Config{Durability: Acked(65)}, invalid, "Durability"},
		{"a prefix with a hash tag", single(redis.Options{}), Config{Prefix: "{a}"}, invalid, "Prefix"},
		{"a long prefix", single(redis.Options{}), Config{Prefix: strings.Repeat("p", 129)}, invalid, "Prefix"},

		{"a ring", redis.NewRing(&redis.RingOptions{}), Config{}, misconfigured, "redis.Ring"},
		{"another client", struct{ redis.UniversalClient }{}, Config{}, misconfigured, "want *redis.Client"},
		{"reads from replicas", cluster(redis.ClusterOptions{ReadOnly: true}), Config{}, misconfigured, "ReadOnly"},
		{"reads from the nearest", cluster(redis.ClusterOptions{RouteByLatency: true}), Config{}, misconfigured, "RouteByLatency"},
		{"reads from anywhere", cluster(redis.ClusterOptions{RouteRandomly: true}), Config{}, misconfigured, "RouteRandomly"},
		{"hangs for ever", single(redis.Options{ReadTimeout: -1}), Config{}, misconfigured, "ReadTimeout"},
		{"hangs for ever in a cluster", cluster(redis.ClusterOptions{ReadTimeout: -1}), Config{}, misconfigured, "ReadTimeout"},
		{"a wait longer than the read", single(redis.Options{ReadTimeout: time.Second}), Config{Durability: Acked(1)}, misconfigured, "AckTimeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := New(c.client, c.config)
			if !errors.Is(err, c.want) || (s == nil) != (c.want != nil) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("store %v, error %v; want %v about %q", s != nil, err, c.want, c.says)
			}
			if c.want == nil {
				return
			}
			if s, err := Open(t.Context(), c.client, c.config); !errors.Is(err, c.want) || s != nil {
				t.Errorf("open: store %v, error %v; want %v", s != nil, err, c.want)
			}
		})
	}
}

func TestARequestOutOfRangeSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	s := newStore(t, f, Config{})
	ctx := t.Context()
	calls := map[string]func() error{
		"claim":    func() error { _, err := s.Claim(ctx, store.ClaimRequest{}); return err },
		"renew":    func() error { _, err := s.Renew(ctx, make([]store.RenewRequest, 1)); return err },
		"complete": func() error { return s.Complete(ctx, store.CompleteRequest{}) },
		"list":     func() error { _, err := s.List(ctx, store.Query{}); return err },
		"long":     func() error { _, err := s.List(ctx, store.Query{Limit: store.MaxPage + 1}); return err },
		"resolve":  func() error { return s.Resolve(ctx, store.ID{}, store.Resolution{}) },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if f.seen() != "" {
		t.Errorf("sent %q", f.seen())
	}
}

// A batch that waits for replicas may take as long as its answers and its confirmation.
func TestHowLongABatchMayTake(t *testing.T) {
	t.Parallel()
	for readTimeout, want := range map[time.Duration]time.Duration{
		2 * time.Second: 3 * time.Second,
		-1:              pipeline.AnswerWithin + time.Second,
	} {
		client := redis.NewClient(&redis.Options{ReadTimeout: readTimeout, ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = client.Close() })
		s, err := New(client, Config{Durability: Acked(1)})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.combiner.longest; got != want {
			t.Errorf("with a read timeout of %v: %v, want %v", readTimeout, got, want)
		}
	}
}

func TestUsageCountsConnectionsInUse(t *testing.T) {
	t.Parallel()
	asked, free := make(chan struct{}), make(chan struct{})
	f := newFake(t, func(_, _ int, _ []string) string {
		asked <- struct{}{}
		<-free
		return bulk("W")
	})
	s := newStore(t, f, Config{})
	done := make(chan error)
	for _, want := range []int64{1, 0} {
		if want == 1 {
			go func() { done <- s.Release(t.Context(), store.ID{}, store.Owner{1}) }()
			<-asked
		} else {
			close(free)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Usage(); len(got) != 1 || got[0].Name != "connections" || got[0].Used != want {
			t.Errorf("usage %v, want %d connections", got, want)
		}
	}
}

func TestTheClientStaysTheCallers(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	s := newStore(t, f, Config{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := claim(t, s); err != nil {
		t.Errorf("claim after Close: %v", err)
	}
	if _, _, err := s.Watch(t.Context(), store.ID{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("watch after Close: %v, want ErrClosed", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestAClosedClientIsClosed(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	client := newClient(t, f)
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	if _, err := s.Claim(context.WithoutCancel(t.Context()), store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Retention: time.Hour}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("claim: %v, want ErrClosed", err)
	}
}
