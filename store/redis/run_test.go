package repriseredis

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// An answer that a script never gives is an unexpected answer.
func TestAnswersThatNoScriptGives(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"empty":                bulk(""),
		"another":              bulk("?"),
		"a short answer":       bulk("+\x00"),
		"nothing":              "$-1\r\n",
		"never knows a script": "-NOSCRIPT No matching script. Please use EVAL.\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(_, _ int, command []string) string {
				if command[0] == "set" {
					return bulk(string(recordOfClaim(store.Fingerprint{})))
				}
				return answer
			})
			if _, err := claim(t, newStore(t, f, Config{})); !errors.Is(err, store.ErrUnknown) {
				t.Errorf("claim: %v, want ErrUnknown", err)
			}
		})
	}
}

// The pauses grow, and those of several callers are not the same.
func TestPausesGrowAndDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for attempt := range repeats {
			d, seen := firstPause<<(2*attempt), map[time.Duration]bool{}
			for range 50 {
				start := time.Now()
				if !pause(t.Context(), attempt) {
					t.Fatal("the context has ended")
				}
				took := time.Since(start)
				seen[took] = true
				if took < d/2 || took >= d/2+d {
					t.Errorf("the pause after attempt %d is %v, want %v to %v", attempt, took, d/2, d/2+d)
				}
			}
			if len(seen) < 10 {
				t.Errorf("50 pauses after attempt %d take %d different times", attempt, len(seen))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if pause(ctx, repeats) {
			t.Error("a pause goes on after its context")
		}
	})
}

// A repetition by the owner gives the answer of the first call, so a lost answer costs
// only time. Where the second attempt finds no server, the first may have been executed
// yet: the client's retries would hide that.
func TestABrokenConnectionIsFollowedByARepetition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second string // the answer to the repetition; empty: the server has stopped
		want   error
		sent   string // if it matters
	}{
		"a repetition":        {claimed, nil, "1 set, 2 set"},
		"then nobody listens": {"", store.ErrUnknown, "1 set"},
		"then it is loading":  {"-LOADING Redis is loading the dataset in memory\r\n", store.ErrUnknown, ""},
		"then memory is full": {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", store.ErrUnknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fake
			f = newFake(t, func(_, call int, _ []string) string {
				if call > 1 {
					return c.second
				}
				if c.second == "" {
					f.Stop()
				}
				return cut
			})
			if _, err := claim(t, newStore(t, f, Config{})); !errors.Is(err, c.want) {
				t.Errorf("claim: %v, want %v", err, c.want)
			}
			if c.sent != "" && f.seen() != c.sent {
				t.Errorf("sent %q, want %q", f.seen(), c.sent)
			}
		})
	}
}

// A call whose context has ended, or that finds no server, was not executed.
func TestACallThatWasNotSentIsUnavailable(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	s := newStore(t, f, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Release(ctx, store.ID{}, store.Owner{1}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("release: %v, want ErrUnavailable", err)
	}
	if f.seen() != "" {
		t.Errorf("sent %q, want nothing", f.seen())
	}
	f.Stop()
	if _, err := claim(t, s); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("claim without a server: %v, want ErrUnavailable", err)
	}
}

func TestFailuresHaveAClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer string
		want   error
		calls  int // how often the native claim is sent
	}{
		{"demoted", "-READONLY You can't write against a read only replica.\r\n", store.ErrUnavailable, 4},
		{"loading", "-LOADING Redis is loading the dataset in memory\r\n", store.ErrUnavailable, 4},
		{"cluster down", "-CLUSTERDOWN The cluster is down\r\n", store.ErrUnavailable, 4},
		{"busy", "-BUSY Redis is busy running a script.\r\n", store.ErrUnavailable, 1},
		{"disk", "-MISCONF Errors writing to the AOF file: No space left on device\r\n", store.ErrUnavailable, 1},
		{"too few replicas", "-NOREPLICAS Not enough good replicas to write.\r\n", store.ErrUnavailable, 1},
		{"memory", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", store.ErrFull, 1},
		{"corrupt", bulk("!"), store.ErrCorrupt, 1},
		{"another version", bulk("\x33" + strings.Repeat("h", 70)), store.ErrCorrupt, 1},
		{"password", "-NOAUTH Authentication required.\r\n", store.ErrMisconfigured, 1},
		{"permission", "-NOPERM this user has no permissions to run the 'evalsha' command\r\n", store.ErrMisconfigured, 1},
		{"permission in a script", "-ERR The user executing the script can't run this command or subcommand script: 00, on @user_script:1.\r\n", store.ErrMisconfigured, 1},
		{"permission in a script of a newer server", "-ERR ACL failure in script: User app has no permissions to run the 'set' command script: 00, on @user_script:1.\r\n", store.ErrMisconfigured, 1},
		{"too old", "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'\r\n", store.ErrMisconfigured, 1},
		{"not a cluster client", "-MOVED 3999 127.0.0.1:1\r\n", store.ErrMisconfigured, 1},
		{"an error of a proxy", "-ERR upstream failure\r\n", store.ErrUnknown, 1},
		{"always cut", cut, store.ErrUnknown, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(_, _ int, _ []string) string { return c.answer })
			_, err := claim(t, newStore(t, f, Config{}))
			if !errors.Is(err, c.want) {
				t.Errorf("claim: %v, want %v", err, c.want)
			}
			if n := strings.Count(f.seen(), "set"); n != c.calls {
				t.Errorf("sent %d times, want %d: %s", n, c.calls, f.seen())
			}
		})
	}
}

// A call that was redirected is sent to the node of its key at once.
func TestAMovedCallIsSentToTheNodeOfItsKey(t *testing.T) {
	t.Parallel()
	asked, addrs := "", make([]string, 2)
	for i := range addrs {
		addrs[i] = newFake(t, func(_, _ int, command []string) string {
			switch {
			case command[0] == "command":
				return "*0\r\n" // the client knows it anyway
			case asked == "":
				asked = addrs[i]
				return "-MOVED 1 " + asked + "\r\n"
			case asked != addrs[i]:
				t.Errorf("%s is at another node than its key", command[0])
			}
			return claimed
		}).Addr
	}
	s := newClusterStore(t, addrs...)
	for n := range 32 { // a wrong slot is that of the other node half of the time
		asked = ""
		r := store.ClaimRequest{ID: store.ID{byte(n)}, Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}, Waiting: n%2 == 0}
		if _, err := s.Claim(t.Context(), r); err != nil {
			t.Errorf("claim %d: %v", n, err)
		}
	}
}

func TestErrorsShowNoOwnerAndNoPayload(t *testing.T) {
	t.Parallel()
	for _, answer := range []func([]string) string{
		func([]string) string { return "-ERR upstream failure\r\n" },
		func(command []string) string {
			return "-ERR unknown command '" + command[0] + "', with args beginning with: '" + strings.Join(command[1:], "' '") + "'\r\n"
		},
	} {
		f := newFake(t, func(_, _ int, command []string) string { return answer(command) })
		s := newStore(t, f, Config{})
		err := s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner([]byte("sixteen-bytes-ok")), Payload: []byte("secret"), Policy: store.Policy{Retention: time.Hour}})
		if err == nil || strings.Contains(err.Error(), "sixteen") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "args") {
			t.Errorf("error %q", err)
		}
	}
	c := &command{fixed: blob("sixteen-bytes-ok")}
	if got := c.fixed.String(); got != "[16 bytes]" {
		t.Errorf("a traced argument reads %q", got)
	}
}

// Before a handshake has succeeded, no command is written: alone, in a batch, or where a
// confirmation follows.
func TestAFailedHandshakeDidNotExecute(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewUnstartedServer(nil)
	stranger.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	stranger.StartTLS() // with a certificate that no authority of the client signed
	t.Cleanup(stranger.Close)
	f := newFake(t, func(_, _ int, command []string) string {
		if command[0] == "auth" {
			return "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		}
		return claimed
	})
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	for name, c := range map[string]struct {
		addr, password string
		secure         *tls.Config
		want           error
	}{
		"a certificate of a stranger": {stranger.Listener.Addr().String(), "", secure, store.ErrUnavailable},
		"a server without TLS":        {f.Addr, "", secure, store.ErrUnavailable},
		"a wrong password":            {f.Addr, "wrong", nil, store.ErrMisconfigured},
	} {
		for _, config := range []Config{{}, {NoCombining: true}, {Durability: Acked(1)}} {
			client := redis.NewClient(&redis.Options{
				Addr: c.addr, Password: c.password, PoolSize: 1, PoolTimeout: time.Minute, DialerRetries: 1, ContextTimeoutEnabled: true, TLSConfig: c.secure,
			})
			t.Cleanup(func() { _ = client.Close() })
			s := over(t, client, config)
			complete := func() {
				err := s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}})
				if !errors.Is(err, c.want) {
					t.Errorf("%s, %+v: complete: %v, want %v", name, config, err, c.want)
				}
			}
			var calling sync.WaitGroup
			for range 8 {
				calling.Go(complete)
			}
			calling.Wait()
			if _, err := claim(t, s); !errors.Is(err, c.want) {
				t.Errorf("%s, %+v: claim: %v, want %v", name, config, err, c.want)
			}
			if _, err := s.Check(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("%s: check: %v, want %v", name, err, c.want)
			}
		}
	}
}
