package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

func TestAClaimIsOneWrite(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	got, err := claim(t, newStore(t, f, Config{}))
	want := store.ClaimResult{Outcome: store.Claimed, Attempt: 1, Fence: 1999, Remaining: 999 * time.Millisecond}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("claim = %+v, %v; want %+v", got, err, want)
	}
	if f.seen() != "1 set" {
		t.Errorf("sent %q, want one set", f.seen())
	}
}

func TestAnUnknownScriptIsSentOnceByItsSource(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, command []string) string {
		if strings.EqualFold(command[0], "evalsha") {
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		}
		return bulk("W")
	})
	if err := newStore(t, f, Config{}).Release(t.Context(), store.ID{}, store.Owner{1}); err != nil {
		t.Error(err)
	}
	if f.seen() != "1 evalsha, 1 eval" {
		t.Errorf("sent %q", f.seen())
	}
}

// A repetition by the owner gives the answer of the first call, so a lost answer costs
// only time.
func TestABrokenConnectionIsFollowedByARepetition(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, call int, _ []string) string {
		if call == 1 {
			return cut
		}
		return claimed
	})
	if _, err := claim(t, newStore(t, f, Config{})); err != nil {
		t.Error(err)
	}
	if f.seen() != "1 set, 2 set" {
		t.Errorf("sent %q", f.seen())
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
		{"type", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", store.ErrCorrupt, 1},
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
		{"empty", bulk(""), store.ErrCorrupt, 1},
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

// An empty answer to a write that replicas have to confirm is no write.
func TestAnEmptyAnswerConfirmsNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return bulk("") })
	err := newStore(t, f, Config{Durability: Acked(1)}).Complete(t.Context(), store.CompleteRequest{Owner: store.Owner{1}, Retention: time.Hour})
	if !errors.Is(err, store.ErrUnknown) || f.seen() != "1 evalsha" {
		t.Errorf("complete: %v, sent %q; want ErrUnknown and no wait", err, f.seen())
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

// Where the nodes of a cluster are unknown, no command was sent.
func TestAClusterThatNobodyKnowsDidNotExecute(t *testing.T) {
	t.Parallel()
	unknown := &net.OpError{Op: "dial", Err: errors.New("nobody is there")}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true, MaxRedirects: -1,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return nil, unknown },
	})
	t.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ctx, id := t.Context(), store.ID{}
	for name, call := range map[string]func() error{
		"claim":   func() error { _, err := claim(t, s); return err },
		"inspect": func() error { _, err := s.Inspect(ctx, id); return err },
		"watch":   func() error { _, _, err := s.Watch(ctx, id); return err },
		"list":    func() error { _, err := s.List(ctx, store.Query{Limit: 1}); return err },
		"check":   func() error { _, err := s.Check(ctx); return err },
		"probe":   func() error { return s.probe(ctx) },
	} {
		if err := call(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
}

func TestAServerThatIsNotThereDidNotExecute(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	s := newStore(t, f, Config{})
	f.Stop()
	if _, err := claim(t, s); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("claim: %v, want ErrUnavailable", err)
	}
}

// The second attempt finds no server, and yet the first may have been executed:
// the client's retries would hide that.
func TestOnceMaybeExecutedStaysUnknown(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{
		"then nobody listens": "",
		"then it is loading":  "-LOADING Redis is loading the dataset in memory\r\n",
		"then memory is full": "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fake
			f = newFake(t, func(_, call int, _ []string) string {
				if call > 1 {
					return second
				}
				if second == "" {
					f.Stop()
				}
				return cut
			})
			if _, err := claim(t, newStore(t, f, Config{})); !errors.Is(err, store.ErrUnknown) {
				t.Errorf("claim: %v, want ErrUnknown", err)
			}
		})
	}
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
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
}

func TestAContextThatEndsOnTheWayIsUnknown(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return mute })
	s := newStore(t, f, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Release(ctx, store.ID{}, store.Owner{1}); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("release: %v, want ErrUnknown", err)
	}
}

// One entry that cannot be renewed must not keep the others from it.
func TestABatchOfRenewalsIsIndependent(t *testing.T) {
	t.Parallel()
	answers := []string{bulk("W"), bulk("!"), bulk("F"), bulk("X"), "-BUSY Redis is busy\r\n"}
	f := newFake(t, func(_, call int, _ []string) string { return answers[call-1] })
	batch := make([]store.RenewRequest, len(answers))
	for i := range batch {
		batch[i] = store.RenewRequest{ID: store.ID{byte(i)}, Owner: store.Owner{1}, Lease: time.Second}
	}
	got, err := newStore(t, f, Config{}).Renew(t.Context(), batch)
	want := []store.RenewStatus{store.Renewed, store.RenewBusy, store.RenewCompleted, store.RenewLost, store.RenewBusy}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("renew = %v, %v; want %v", got, err, want)
	}
}

// The first entry only waits for its script to be sent; the second is why no more is
// sent in time.
func TestAnEntryThatWasNotSentAgainHasFailed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := newFake(t, func(_, call int, _ []string) string {
		if call == 1 {
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		}
		cancel()
		return "-LOADING Redis is loading the dataset in memory\r\n"
	})
	client := redis.NewClient(&redis.Options{Addr: f.Addr, Protocol: 2, DisableIdentity: true}) // reads on after the cancellation
	t.Cleanup(func() { _ = client.Close() })
	batch := []store.RenewRequest{{ID: store.ID{1}, Owner: store.Owner{1}, Lease: time.Second}, {ID: store.ID{2}, Owner: store.Owner{1}, Lease: time.Second}}
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Renew(ctx, batch); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("renew = %v, %v; want ErrUnavailable", got, err)
	}
}

func TestABatchThatFailedAsAWholeIsAnError(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return "-BUSY Redis is busy\r\n" })
	batch := []store.RenewRequest{{ID: store.ID{1}, Owner: store.Owner{1}, Lease: time.Second}, {ID: store.ID{2}, Owner: store.Owner{1}, Lease: time.Second}}
	if got, err := newStore(t, f, Config{}).Renew(t.Context(), batch); !errors.Is(err, store.ErrUnavailable) || got != nil {
		t.Errorf("renew = %v, %v; want ErrUnavailable", got, err)
	}
}

func TestErrorsShowNoOwnerAndNoPayload(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return "-ERR upstream failure\r\n" })
	s := newStore(t, f, Config{})
	err := s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner([]byte("sixteen-bytes-ok")), Payload: []byte("secret"), Retention: time.Hour})
	if err == nil || strings.Contains(err.Error(), "sixteen") || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %q", err)
	}
	c := &command{fixed: blob("sixteen-bytes-ok")}
	if got := c.fixed.String(); got != "[16 bytes]" {
		t.Errorf("a traced argument reads %q", got)
	}
}

// go-redis keeps the connection unless the first command of a pipeline was refused.
func TestAServerThatWasDemotedWithinAPipelineLosesItsConnection(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(conn, call int, _ []string) string {
		if conn == 1 && call == 2 {
			return "-READONLY You can't write against a read only replica.\r\n"
		}
		return bulk("W")
	})
	batch := make([]store.RenewRequest, 3)
	for i := range batch {
		batch[i] = store.RenewRequest{ID: store.ID{byte(i)}, Owner: store.Owner{1}, Lease: time.Second}
	}
	got, err := newStore(t, f, Config{}).Renew(t.Context(), batch)
	if err != nil || fmt.Sprint(got) != "[renewed renewed renewed]" {
		t.Errorf("renew = %v, %v", got, err)
	}
	if f.seen() != "1 evalsha, 1 evalsha, 1 evalsha, 2 evalsha" {
		t.Errorf("sent %q; want the repetition on another connection", f.seen())
	}
}

// The repetition of a resolution finds a record that has changed: the lost first one may
// have done it.
func TestAResolutionWhoseReplyWasLostIsUnknown(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]error{
		cut:                                 store.ErrUnknown,
		"-LOADING\r\n":                      store.ErrRecordChanged,
		"-NOSCRIPT No matching script.\r\n": store.ErrRecordChanged,
	} {
		f := newFake(t, func(_, call int, _ []string) string {
			if call == 1 {
				return first
			}
			return bulk("N")
		})
		err := newStore(t, f, Config{}).Resolve(t.Context(), store.ID{}, store.Resolution{Forget: true})
		if !errors.Is(err, want) {
			t.Errorf("after %q: %v, want %v", first, err, want)
		}
	}
}
