package listener

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
)

// denying returns a client of a server that answers subscriptions as the test says, and
// the listeners of that server.
func denying(t *testing.T, answer func(call int) string) (*redis.Client, *Set) {
	t.Helper()
	var calls atomic.Int64
	f := fakeserver.Start(t, func(_ int, command []string) string {
		if strings.EqualFold(command[0], "ssubscribe") {
			return answer(int(calls.Add(1)))
		}
		return ":0\r\n"
	})
	return listening(t, f)
}

func listening(t *testing.T, f *fakeserver.Server) (*redis.Client, *Set) {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: f.Addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = client.Close() })
	s := &Set{}
	t.Cleanup(s.Close)
	return client, s
}
