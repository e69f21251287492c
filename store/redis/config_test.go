package repriseredis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
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
	for _, c := range []struct {
		name   string
		client redis.UniversalClient
		config Config
		says   string // part of the refusal; empty accepts
	}{
		{"the zero config", single(redis.Options{}), Config{}, ""},
		{"everything set", single(redis.Options{}), Config{Prefix: "p:", Durability: Acked(2), AckTimeout: 4 * time.Second}, ""},
		{"a cluster", cluster(redis.ClusterOptions{}), Config{Durability: Fsynced(0)}, ""},
		{"Sentinel", redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}}), Config{}, ""},
		{"no read timeout but contexts", single(redis.Options{ReadTimeout: -1, ContextTimeoutEnabled: true}), Config{}, ""},

		{"no client", nil, Config{}, "client is nil"},
		{"a nil client", (*redis.Client)(nil), Config{}, "client is nil"},
		{"a nil cluster client", (*redis.ClusterClient)(nil), Config{}, "client is nil"},
		{"a ring", redis.NewRing(&redis.RingOptions{}), Config{}, "redis.Ring"},
		{"another client", struct{ redis.UniversalClient }{}, Config{}, "want *redis.Client"},
		{"reads from replicas", cluster(redis.ClusterOptions{ReadOnly: true}), Config{}, "ReadOnly"},
		{"reads from the nearest", cluster(redis.ClusterOptions{RouteByLatency: true}), Config{}, "RouteByLatency"},
		{"reads from anywhere", cluster(redis.ClusterOptions{RouteRandomly: true}), Config{}, "RouteRandomly"},
		{"hangs for ever", single(redis.Options{ReadTimeout: -1}), Config{}, "ReadTimeout"},
		{"hangs for ever in a cluster", cluster(redis.ClusterOptions{ReadTimeout: -1}), Config{}, "ReadTimeout"},
		{"a wait longer than the read", single(redis.Options{ReadTimeout: time.Second}), Config{Durability: Acked(1)}, "AckTimeout"},
		{"a wait that is too short", single(redis.Options{}), Config{AckTimeout: time.Millisecond}, "AckTimeout"},
		{"a negative wait", single(redis.Options{}), Config{AckTimeout: -1}, "AckTimeout"},
		{"a wait that is too long", single(redis.Options{}), Config{AckTimeout: time.Hour}, "AckTimeout"},
		{"a negative number of replicas", single(redis.Options{}), Config{Durability: Acked(-1)}, "Durability"},
		{"no replica to wait for", single(redis.Options{}), Config{Durability: Acked(0)}, "Durability"},
		{"too many replicas", single(redis.Options{}), Config{Durability: Acked(65)}, "Durability"},
		{"a prefix with a hash tag", single(redis.Options{}), Config{Prefix: "{a}"}, "Prefix"},
		{"a long prefix", single(redis.Options{}), Config{Prefix: strings.Repeat("p", 129)}, "Prefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := NewWithConfig(c.client, c.config)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.says != "" && (!errors.Is(err, reprise.ErrMisconfigured) || !strings.Contains(err.Error(), c.says) || s != nil):
				t.Errorf("error %v, want ErrMisconfigured about %s", err, c.says)
			}
		})
	}
}

func TestNewTellsEveryCallWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := New(nil)
	ctx := t.Context()
	calls := map[string]func() error{
		"claim":    func() error { _, err := s.Claim(ctx, reprise.ClaimRequest{}); return err },
		"renew":    func() error { _, err := s.Renew(ctx, nil); return err },
		"complete": func() error { return s.Complete(ctx, reprise.CompleteRequest{}) },
		"release":  func() error { return s.Release(ctx, reprise.ID{}, reprise.Owner{}) },
		"watch":    func() error { _, _, err := s.Watch(ctx, reprise.ID{}); return err },
		"inspect":  func() error { _, err := s.Inspect(ctx, reprise.ID{}); return err },
		"list":     func() error { _, err := s.List(ctx, 1); return err },
		"resolve":  func() error { return s.Resolve(ctx, reprise.ID{}, reprise.Resolution{}) },
		"check":    func() error { _, err := s.Check(ctx); return err },
		"open":     func() error { _, err := Open(ctx, nil, Config{}); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, reprise.ErrMisconfigured) || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: %v, want ErrMisconfigured about nil", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestARequestOutOfRangeSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	s := newStore(t, f, Config{})
	ctx := t.Context()
	calls := map[string]func() error{
		"claim":    func() error { _, err := s.Claim(ctx, reprise.ClaimRequest{}); return err },
		"renew":    func() error { _, err := s.Renew(ctx, make([]reprise.RenewRequest, 1)); return err },
		"complete": func() error { return s.Complete(ctx, reprise.CompleteRequest{}) },
		"list":     func() error { _, err := s.List(ctx, 0); return err },
		"long":     func() error { _, err := s.List(ctx, 10_001); return err },
		"resolve":  func() error { return s.Resolve(ctx, reprise.ID{}, reprise.Resolution{}) },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, reprise.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if f.seen() != "" {
		t.Errorf("sent %q", f.seen())
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
	if _, _, err := s.Watch(t.Context(), reprise.ID{}); !errors.Is(err, reprise.ErrClosed) {
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
	s := New(client)
	_ = client.Close()
	if _, err := s.Claim(context.WithoutCancel(t.Context()), reprise.ClaimRequest{Owner: reprise.Owner{1}, Lease: time.Second, Retention: time.Hour}); !errors.Is(err, reprise.ErrClosed) {
		t.Errorf("claim: %v, want ErrClosed", err)
	}
}
