package repriseredis

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

func TestNewRefusesUnusableOptions(t *testing.T) {
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
		{"a prefix alone", single(redis.Options{}), Config{Prefix: servicePrefix}, nil, ""},
		{"everything set", single(redis.Options{ReadTimeout: 5 * time.Second}), Config{Prefix: "p:", Durability: Acked(2), AckTimeout: 4 * time.Second}, nil, ""},
		{"a cluster", cluster(redis.ClusterOptions{}), Config{Prefix: servicePrefix, Durability: Fsynced(0)}, nil, ""},
		{"Sentinel", redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}}), Config{Prefix: servicePrefix}, nil, ""},
		{"no read timeout but contexts", single(redis.Options{ReadTimeout: -1, ContextTimeoutEnabled: true}), Config{Prefix: servicePrefix}, nil, ""},

		{"the most replicas", single(redis.Options{}), Config{Prefix: servicePrefix, Durability: Acked(64)}, nil, ""},
		{"the shortest wait", single(redis.Options{}), Config{Prefix: servicePrefix, AckTimeout: 10 * time.Millisecond}, nil, ""},
		{"the longest wait, which nothing is waited for", single(redis.Options{}), Config{Prefix: servicePrefix, AckTimeout: 10 * time.Second}, nil, ""},
		{"a wait and no read timeout", single(redis.Options{ReadTimeout: -1, ContextTimeoutEnabled: true}), Config{Prefix: servicePrefix, Durability: Acked(1)}, nil, ""},

		{"no client", nil, Config{Prefix: servicePrefix}, invalid, "client is nil"},
		{"a nil client", (*redis.Client)(nil), Config{Prefix: servicePrefix}, invalid, "client is nil"},
		{"a nil cluster client", (*redis.ClusterClient)(nil), Config{Prefix: servicePrefix}, invalid, "client is nil"},
		{"a wait that is too short", single(redis.Options{}), Config{Prefix: servicePrefix, AckTimeout: time.Millisecond}, invalid, "AckTimeout"},
		{"a negative wait", single(redis.Options{}), Config{Prefix: servicePrefix, AckTimeout: -1}, invalid, "AckTimeout"},
		{"a wait that is too long", single(redis.Options{}), Config{Prefix: servicePrefix, AckTimeout: time.Hour}, invalid, "AckTimeout"},
		{"a negative number of replicas", single(redis.Options{}), Config{Prefix: servicePrefix, Durability: Acked(-1)}, invalid, "Durability"},
		{"no replica to wait for", single(redis.Options{}), Config{Prefix: servicePrefix, Durability: Acked(0)}, invalid, "Durability"},
		{"too many replicas", single(redis.Options{}), Config{Prefix: servicePrefix, Durability: Acked(65)}, invalid, "Durability"},
		{"the zero config", single(redis.Options{}), Config{}, invalid, `Config.Prefix is empty: it has no default, because it names the service whose records these are, such as "orders:"`},
		{"a prefix with a hash tag", single(redis.Options{}), Config{Prefix: "{a}"}, invalid, "Prefix"},

		{"a ring", redis.NewRing(&redis.RingOptions{}), Config{Prefix: servicePrefix}, misconfigured, "redis.Ring"},
		{"another client", struct{ redis.UniversalClient }{}, Config{Prefix: servicePrefix}, misconfigured, "want *redis.Client"},
		{"reads from replicas", cluster(redis.ClusterOptions{ReadOnly: true}), Config{Prefix: servicePrefix}, misconfigured, "ReadOnly"},
		{"reads from the nearest", cluster(redis.ClusterOptions{RouteByLatency: true}), Config{Prefix: servicePrefix}, misconfigured, "RouteByLatency"},
		{"reads from anywhere", cluster(redis.ClusterOptions{RouteRandomly: true}), Config{Prefix: servicePrefix}, misconfigured, "RouteRandomly"},
		{"hangs for ever", single(redis.Options{ReadTimeout: -1}), Config{Prefix: servicePrefix}, misconfigured, "ReadTimeout"},
		{"hangs for ever in a cluster", cluster(redis.ClusterOptions{ReadTimeout: -1}), Config{Prefix: servicePrefix}, misconfigured, "ReadTimeout"},
		{"a wait longer than the read", single(redis.Options{ReadTimeout: time.Second}), Config{Prefix: servicePrefix, Durability: Acked(1)}, misconfigured, "AckTimeout"},
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
