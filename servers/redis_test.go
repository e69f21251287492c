package servers_test

import (
	"testing"

	"github.com/reprise-go/reprise/servers"
)

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
	s := servers.Redis.Start(t, "appendonly=yes", "appendfsync=always", "maxmemory-policy=allkeys-lru")
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
}
