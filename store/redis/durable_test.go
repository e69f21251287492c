package repriseredis

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// confirming returns a server that answers a script with what the test says, and a wait with confirm.
func confirming(t *testing.T, script, confirm string) *fake {
	t.Helper()
	return newFake(t, func(_, _ int, command []string) string {
		if strings.HasPrefix(strings.ToLower(command[0]), "wait") {
			return confirm
		}
		return script
	})
}

func TestAWriteWaitsOnItsOwnConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level   Durability
		confirm string
		sent    string
	}{
		{Async(), "", `^1 evalsha$`},
		{Acked(2), ":2\r\n", `^1 evalsha, 1 wait 2 1000$`},
		{Fsynced(0), "*2\r\n:1\r\n:0\r\n", `^1 evalsha, 1 waitaof 1 0 1000$`},
		{Fsynced(1), "*2\r\n:1\r\n:1\r\n", `^1 evalsha, 1 waitaof 1 1 1000$`},
	} {
		t.Run(c.level.String(), func(t *testing.T) {
			t.Parallel()
			f := confirming(t, claimed, c.confirm)
			if _, err := claim(t, newStore(t, f, Config{Durability: c.level})); err != nil {
				t.Error(err)
			}
			if !regexp.MustCompile(c.sent).MatchString(f.seen()) {
				t.Errorf("sent %q, want %s", f.seen(), c.sent)
			}
		})
	}
}

func TestTooFewConfirmationsAreNotReplicated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		level   Durability
		confirm string
		want    error
	}{
		{"none", Acked(1), ":0\r\n", reprise.ErrNotReplicated},
		{"one of two", Acked(2), ":1\r\n", reprise.ErrNotReplicated},
		{"not on disk", Fsynced(0), "*2\r\n:0\r\n:0\r\n", reprise.ErrNotReplicated},
		{"on disk here only", Fsynced(1), "*2\r\n:1\r\n:0\r\n", reprise.ErrNotReplicated},
		{"on disk there only", Fsynced(1), "*2\r\n:0\r\n:1\r\n", reprise.ErrNotReplicated},
		{"the connection broke", Acked(1), cut, reprise.ErrUnknown}, // go-redis fails the whole pipeline
		{"demoted meanwhile", Acked(1), "-UNBLOCKED force unblock from blocking operation\r\n", reprise.ErrNotReplicated},
		{"an answer that is none", Acked(1), bulk("1"), reprise.ErrNotReplicated},
		{"too old for it", Fsynced(0), "-ERR unknown command 'waitaof'\r\n", reprise.ErrMisconfigured},
		{"no file", Fsynced(0), "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n", reprise.ErrMisconfigured},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, confirming(t, claimed, c.confirm), Config{Durability: c.level})
			if got, err := claim(t, s); !errors.Is(err, c.want) || got.Outcome != 0 {
				t.Errorf("claim = %+v, %v; want %v", got, err, c.want)
			}
		})
	}
}

func TestEveryWriteOfAnAttemptIsConfirmed(t *testing.T) {
	t.Parallel()
	s := newStore(t, confirming(t, bulk("D"), ":0\r\n"), Config{Durability: Acked(1)})
	if err := s.Complete(t.Context(), reprise.CompleteRequest{Owner: reprise.Owner{1}, Retention: time.Hour}); !errors.Is(err, reprise.ErrNotReplicated) {
		t.Errorf("complete: %v, want ErrNotReplicated", err)
	}
	s = newStore(t, confirming(t, bulk("R"), ":0\r\n"), Config{Durability: Acked(1)})
	batch := []reprise.RenewRequest{{Owner: reprise.Owner{1}, Lease: time.Second}}
	if _, err := s.Renew(t.Context(), batch); !errors.Is(err, reprise.ErrNotReplicated) {
		t.Errorf("renew: %v, want ErrNotReplicated", err)
	}
	if err := s.Resolve(t.Context(), reprise.ID{}, reprise.Resolution{Forget: true}); !errors.Is(err, reprise.ErrNotReplicated) {
		t.Errorf("resolve: %v, want ErrNotReplicated", err)
	}
}

// An answer that wrote nothing has nothing to be confirmed.
func TestAnAnswerThatWroteNothingCountsWithoutConfirmation(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]reprise.Outcome{
		"\x12" + strings.Repeat("h", completedHead-1) + "payload": reprise.Completed,
		"M":                                 reprise.Mismatch,
		"L":                                 reprise.Lapsed,
		"P\x00\x00\x00\x00\x00\x0f\x42\x40": reprise.InProgress,
		"=" + claimed[len("$21\r\n+"):len(claimed)-len("\r\n")]: reprise.Claimed,
	} {
		s := newStore(t, confirming(t, bulk(answer), ":0\r\n"), Config{Durability: Acked(1)})
		if got, err := claim(t, s); err != nil || got.Outcome != want {
			t.Errorf("claim = %+v, %v; want %v", got, err, want)
		}
	}
}

// A wait for ever, which zero would be, or past the end of the context leaves the caller without the answer that it was refused.
func TestTheWaitEndsBeforeTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if ms := Acked(1).command(ctx, time.Second).Args()[2]; ms.(int64) < 1 || ms.(int64) > 150 {
		t.Errorf("waits for %v ms of 200", ms)
	}
	ended, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if ms := Acked(1).command(ended, time.Second).Args()[2]; ms.(int64) != 1 {
		t.Errorf("waits for %v ms of none, want 1", ms)
	}
}
