package servers_test

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
)

// forEachFlavor runs f for Redis and Valkey, each skipped where it is missing.
func forEachFlavor(t *testing.T, f func(t *testing.T, flavor *servers.Flavor)) {
	for _, flavor := range []*servers.Flavor{servers.Redis, servers.Valkey} {
		t.Run(flavor.String(), func(t *testing.T) {
			t.Parallel()
			f(t, flavor)
		})
	}
}

// do sends a command that has to succeed, and returns the reply.
func do(t *testing.T, s *servers.RedisServer, args ...string) any {
	t.Helper()
	reply, err := s.Do(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestRedisStartsWithSettingsAndRestartsAfterKill(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		s := flavor.Start(t, "appendonly=yes", "appendfsync=always", "maxmemory-policy=allkeys-lru")
		if got := do(t, s, "PING"); got != "PONG" {
			t.Errorf("PING answered %v", got)
		}
		if !s.Version().AtLeast(7, 0) {
			t.Errorf("version %v", s.Version())
		}
		policy, _ := do(t, s, "CONFIG", "GET", "maxmemory-policy").([]any)
		if len(policy) != 2 || policy[1] != "allkeys-lru" {
			t.Errorf("maxmemory-policy is %v", policy)
		}

		do(t, s, "SET", "k", "v")
		s.Kill(t)
		if _, err := s.Do(t.Context(), "PING"); err == nil {
			t.Error("a killed server answered")
		}
		s.Restart(t)
		if got := do(t, s, "GET", "k"); got != "v" {
			t.Errorf("after the restart k is %v", got)
		}
	})
}

func TestRedisPausedRepliesOnlyAfterResume(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		s := flavor.Start(t)
		s.Pause(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Do(ctx, "PING"); err == nil {
			t.Error("a paused server answered")
		}
		s.Resume(t)
		do(t, s, "PING")
		s.Pause(t) // and is stopped while it is paused
	})
}

func TestSharedRedisIsOneServer(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		s := flavor.Shared(t)
		if other := flavor.Shared(t); other != s {
			t.Errorf("shared servers at %s and %s", s.Addr(), other.Addr())
		}
		do(t, s, "PING")
	})
}
