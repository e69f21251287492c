package repriseredis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/pipeline"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// A single write that replicas confirm goes through the combiner, and a batch of the
// caller's does not.
func TestSingleConfirmedWritesAreCombined(t *testing.T) {
	t.Parallel()
	f := confirming(t, bulk("W"), ":1\r\n")
	s := newStore(t, f, Config{Durability: Acked(1)})
	combined := 0
	s.combiner = newCombiner(func(_ context.Context, batch []*command) (confirm func()) {
		combined += len(batch)
		for _, c := range batch {
			c.SetVal("D")
		}
		return nil
	}, time.Hour)
	if err := s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}}); err != nil || combined != 1 {
		t.Errorf("complete: %v, %d calls were combined, want it", err, combined)
	}
	batch := make([]*command, 2)
	for i := range batch {
		batch[i] = &command{script: record.ResolveScript, wait: true}
		s.call(t.Context(), batch[i], store.ID{})
	}
	if s.run(t.Context(), batch); combined != 1 {
		t.Errorf("%d calls were combined, want the first only", combined)
	}
}

func TestLargeWritesAndRenewalsAreNotCombined(t *testing.T) {
	t.Parallel()
	b := newCombiner(nil, 0)
	for _, c := range []struct {
		name string
		b    *combiner
		c    *command
		want bool
	}{
		{"a claim", b, &command{script: record.ClaimScript, wait: true}, true},
		{"a small payload", b, &command{script: record.CompleteScript, wait: true, payload: make([]byte, pipeline.MaxPayload)}, true},
		{"a large payload", b, &command{script: record.CompleteScript, wait: true, payload: make([]byte, pipeline.MaxPayload+1)}, false},
		{"a renewal", b, &command{script: record.RenewScript, wait: true}, false},
		{"what replicas do not confirm", b, &command{script: record.ReleaseScript}, false},
		{"no combiner", nil, &command{script: record.ClaimScript, wait: true}, false},
	} {
		if got := c.b.combines(c.c); got != c.want {
			t.Errorf("%s: combined %v, want %v", c.name, got, c.want)
		}
	}
}

func TestOptionsDecideAboutCombining(t *testing.T) {
	t.Parallel()
	client := func(o redis.Options) *redis.Client {
		c := redis.NewClient(&o)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	single := client(redis.Options{})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = cluster.Close() })
	for _, c := range []struct {
		name                string
		client              redis.UniversalClient
		config              Config
		combines, pipelines bool
	}{
		{"a single server", single, Config{}, false, true},
		{"switched off", single, Config{NoCombining: true}, false, false},
		{"a cluster", cluster, Config{}, false, true},
		{"replicas confirm", single, Config{Durability: Acked(1)}, true, true},
		{"replicas of a cluster confirm", cluster, Config{Durability: Acked(1)}, false, true},
		{"a limiter has to see every command", client(redis.Options{Limiter: limiter{}}), Config{}, false, false},
		{"credentials change on connections that are in use", client(redis.Options{StreamingCredentialsProvider: streamed{}}), Config{}, false, false},
	} {
		c.config.Prefix = servicePrefix
		s, err := New(c.client, c.config)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.combiner.combines(&command{script: record.ClaimScript, wait: true}); got != c.combines || (s.pipelines != nil) != c.pipelines {
			t.Errorf("%s: combines %v, pipelines %v; want %v, %v", c.name, got, s.pipelines != nil, c.combines, c.pipelines)
		}
	}
}

type limiter struct{ redis.Limiter }

type streamed struct {
	auth.StreamingCredentialsProvider
}

// A wait for replicas concerns those of a pipeline that asked for it.
func TestPipelineConfirmsOnlyDurableWrites(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, call int, command []string) string {
		switch {
		case command[0] == "wait":
			return ":0\r\n"
		case call == 1:
			return bulk("R")
		default:
			return claimed
		}
	})
	s := newStore(t, f, Config{Durability: Acked(1)})
	release, granted := &command{script: record.ReleaseScript}, &command{script: record.ClaimScript, wait: true}
	for _, c := range []*command{release, granted} {
		s.call(t.Context(), c, store.ID{})
	}
	s.transmit(t.Context(), []*command{release, granted})()
	if err := release.refusal(); err != nil {
		t.Errorf("the release: %v", err)
	}
	if err := granted.refusal(); !errors.Is(err, store.ErrNotReplicated) {
		t.Errorf("the claim: %v, want ErrNotReplicated", err)
	}
	if f.seen() != "1 evalsha, 1 evalsha, 1 wait 1 1000" {
		t.Errorf("sent %q", f.seen())
	}
}
