package repriseredis

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// Before a handshake has succeeded, no command is written: alone, in a batch, or where a
// confirmation follows.
func TestAFailedHandshakeDidNotExecute(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewUnstartedServer(nil)
	stranger.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	stranger.StartTLS() // with a certificate that no authority of the client signed
	t.Cleanup(stranger.Close)
	for name, addr := range map[string]string{
		"a certificate of a stranger": stranger.Listener.Addr().String(),
		"a server without TLS":        newFake(t, func(_, _ int, _ []string) string { return claimed }).Addr,
	} {
		for _, config := range []Config{{}, {NoCombining: true}, {Durability: Acked(1)}} {
			client := redis.NewClient(&redis.Options{
				Addr: addr, PoolSize: 1, DialerRetries: 1, ContextTimeoutEnabled: true, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
			})
			t.Cleanup(func() { _ = client.Close() })
			s := over(t, client, config)
			complete := func() {
				err := s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}})
				if !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%s, %+v: complete: %v, want ErrUnavailable", name, config, err)
				}
			}
			var calling sync.WaitGroup
			for range 8 {
				calling.Go(complete)
			}
			calling.Wait()
			if _, err := s.Check(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: check: %v, want ErrUnavailable", name, err)
			}
		}
	}
}
