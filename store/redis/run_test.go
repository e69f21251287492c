package repriseredis

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
