package pipeline

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
)

type limiter struct{ redis.Limiter }

type streamed struct {
	auth.StreamingCredentialsProvider
}

// Options that rule out a pipeline to a single server rule it out to a node of a cluster.
func TestOptionsRuleOutPipelines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*redis.Options)
		want   bool
	}{
		{"nothing special", func(*redis.Options) {}, true},
		{"a limiter has to see every command", func(o *redis.Options) { o.Limiter = limiter{} }, false},
		{"credentials change on connections that are in use", func(o *redis.Options) { o.StreamingCredentialsProvider = streamed{} }, false},
	} {
		all, node := newCluster(t, "127.0.0.1:1", c.change)
		if got := all.of(node) != nil; got != c.want {
			t.Errorf("%s: a pipeline %v, want %v", c.name, got, c.want)
		}
		o := &redis.Options{Addr: "127.0.0.1:1"}
		c.change(o)
		client := redis.NewClient(o)
		t.Cleanup(func() { _ = client.Close() })
		if got := New(client).of(client) != nil; got != c.want {
			t.Errorf("%s, a single server: a pipeline %v, want %v", c.name, got, c.want)
		}
	}
	behind := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = behind.Close() })
	if New(behind) != nil {
		t.Error("behind sentinels: a pipeline")
	}
}

// A server has one pipeline until it is forgotten, and none after the end of all.
func TestServerHasOnePipeline(t *testing.T) {
	t.Parallel()
	p, node := newCluster(t, "127.0.0.1:1", func(*redis.Options) {})
	first := p.of(node)
	if first == nil || p.of(node) != first {
		t.Error("a second pipeline")
	}
	p.forget(first)
	second := p.of(node)
	if second == first {
		t.Error("a forgotten pipeline is used")
	}
	if p.forget(first); p.of(node) != second {
		t.Error("a pipeline was forgotten in the place of another")
	}
	p.Close()
	if p.of(node) != nil {
		t.Error("a pipeline after the end")
	}
}

// A connection lasts while it is used now and then, and ends when it is idle: then a
// cluster client may have dropped its node, so the pipeline is forgotten.
func TestIdlePipelineIsForgotten(t *testing.T) {
	t.Parallel()
	s := startServer(t, answering(fakeserver.Bulk("")))
	const idle = 400 * time.Millisecond
	all, node := newCluster(t, s.Addr, func(o *redis.Options) { o.ConnMaxIdleTime, o.ReadTimeout = idle, 100*time.Millisecond })
	p := all.of(node)
	must(t, p, "")
	c := p.conn.Load()
	born := time.Now()
	eventually(t, "the connection is idle", c.isEnded)
	if lasted := time.Since(born); lasted < idle/2 {
		t.Errorf("a connection that may be idle for %v ended after %v", idle, lasted)
	}
	eventually(t, "the pipeline is forgotten", func() bool {
		all.mu.Lock()
		defer all.mu.Unlock()
		return len(all.nodes) == 0
	})
	must(t, p, "")
}

// A pipeline that was not used is forgotten, and a call that came at that moment makes it
// connect again. The end of all does not wait until it is idle once more, which it never
// is here.
func TestCloseEndsAForgottenPipeline(t *testing.T) {
	t.Parallel()
	s := startServer(t, answering(fakeserver.Bulk("")))
	all, node := newCluster(t, s.Addr, func(*redis.Options) {})
	p := all.of(node)
	all.forget(p)
	must(t, p, "")
	closed := make(chan struct{})
	go func() { all.Close(); close(closed) }()
	eventually(t, "the end", func() bool {
		_, _ = p.do(t.Context(), text("")) // fails once the connection has ended
		select {
		case <-closed:
			return true
		default:
			return false
		}
	})
}
