package pipeline

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
)

// A connection on which one reply too many arrives would give calls the answers of
// others: one that lost its lease would be told that its answer is kept. So a reply of a
// kind that the next command never gets ends the connection.
func TestCallNeverGetsTheAnswerOfAnother(t *testing.T) {
	t.Parallel()
	const calls = 8
	for name, extra := range map[string]string{
		"a status":  "+OK\r\n",
		"a number":  ":1\r\n",
		"an array":  "*1\r\n:1\r\n",
		"a boolean": "#t\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, func(_ int, command []string) string { return fakeserver.Bulk(command[1]) })
			p := connect(t, s)
			c, once := p.conn.Load(), sync.Once{}
			s.answer.Store(func(_ int, command []string) string {
				answer := fakeserver.Bulk(command[1])
				once.Do(func() {
					for deadline := time.Now().Add(time.Minute); c.inFlight.Load() < calls && time.Now().Before(deadline); {
						time.Sleep(time.Millisecond) //nolint:forbidigo // polls
					}
					answer = extra + answer
				})
				return answer
			})
			var calling sync.WaitGroup
			for i := range calls {
				calling.Go(func() {
					want := strings.Repeat("x", i)
					a, err := do(t.Context(), t, p, text(want))
					if err == nil && a.Replies[0].Text != want {
						t.Errorf("%q was answered with %q", want, a.Replies[0].Text)
					}
				})
			}
			calling.Wait()
			if !c.isEnded() {
				t.Error("the connection goes on")
			}
		})
	}
}

// A call gets replies of the kinds that it names, in their order, or a failure.
func TestRepliesAreOfTheKindsThatACallNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want    string
		replies []string
		ok      bool
	}{
		{"$:", []string{"$1\r\na\r\n", ":1\r\n"}, true},
		{"$:", []string{"$-1\r\n", "-ERR no\r\n"}, true},
		{"$", []string{"+OK\r\n"}, false},
		{"$", []string{":1\r\n"}, false},
		{":", []string{"+OK\r\n"}, false},
		{":", []string{"$-1\r\n"}, false},
		{"$", []string{"*1\r\n:1\r\n"}, false},
	} {
		next := 0
		s := startServer(t, answering(fakeserver.Bulk("")))
		p := connect(t, s)
		s.answer.Store(func(int, []string) string {
			next++
			return c.replies[(next-1)%len(c.replies)]
		})
		a, err := do(t.Context(), t, p, stated(c.want))
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, errProtocol) {
			t.Errorf("%q for %q: %+v, %v", c.replies, c.want, a, err)
		}
	}
}

// Only an error that another connection would not give ends a connection, and then with
// its last answer.
func TestOnlyErrorsOfTheConnectionEndIt(t *testing.T) {
	t.Parallel()
	for answer, ends := range map[string]bool{
		"-BUSY Redis is busy running a script.\r\n":        false,
		fakeserver.Bulk("READONLY "):                       false,
		"-READONLY You can't write against a replica.\r\n": true,
		"-NOAUTH Authentication required.\r\n":             true,
	} {
		s := startServer(t, answering(fakeserver.Bulk("")))
		p := connect(t, s)
		c := p.conn.Load()
		s.answerPipeline(answer)
		if _, err := do(t.Context(), t, p, text("")); err != nil {
			t.Errorf("%q: %v", answer, err)
		}
		if ends {
			eventually(t, "the connection ends", c.isEnded)
		} else if c.isEnded() || p.conn.Load() != c {
			t.Errorf("%q ended the connection", answer)
		}
	}
}

// A push between answers is skipped, and an answer without a call ends the
// connection.
func TestUnexpectedProtocolEndsTheConnection(t *testing.T) {
	t.Parallel()
	for extra, ends := range map[string]bool{
		">2\r\n+invalidate\r\n:1\r\n":                        false,
		">2\r\n+message\r\n" + fakeserver.Bulk(long(70_000)): false,
		":1\r\n":             true,
		fakeserver.Bulk("W"): true,
		">1\r\nwhat\r\n":     true,
		"what is this?\r\n":  true,
	} {
		s := startServer(t, answering(fakeserver.Bulk("")))
		p := connect(t, s)
		c := p.conn.Load()
		s.answerPipeline(fakeserver.Bulk("") + extra)
		for range 3 {
			_, err := do(t.Context(), t, p, text(""))
			if err != nil && !ends {
				t.Errorf("after %.40q: %v", extra, err)
			}
		}
		if ends {
			eventually(t, "the connection ends", c.isEnded)
		} else if c.isEnded() || p.conn.Load() != c {
			t.Errorf("%.40q ended the connection", extra)
		}
	}
}

// A server that stops answering is noticed after the read timeout, also when the
// connection was idle before and looked for an answer seldom.
func TestSilentServerIsNoticed(t *testing.T) {
	t.Parallel()
	const read = 200 * time.Millisecond
	s := startServer(t, answering(fakeserver.Bulk("")))
	p := connect(t, s, func(o *redis.Options) { o.ReadTimeout = read })
	c := p.conn.Load()
	eventually(t, "the connection looks seldom", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return time.Until(c.readTill) > 10*time.Second
	})
	s.answerPipeline(fakeserver.Mute)
	start := time.Now()
	_, err := do(t.Context(), t, p, text(""))
	if took := time.Since(start); took < read || !errors.Is(err, errSilence) {
		t.Errorf("%v after %v, want silence after %v or more", err, took, read)
	}
	eventually(t, "the connection ends", c.isEnded)
}

// A caller waits for its answer no longer than its context lasts, and leaves it behind.
func TestCallLeavesItsPipelineInTime(t *testing.T) {
	t.Parallel()
	s := startServer(t, answering(fakeserver.Bulk("")))
	p := connect(t, s, func(o *redis.Options) { o.ReadTimeout = time.Hour })
	t.Cleanup(s.Stop) // before the pipeline is closed, which would wait for answers
	s.answerPipeline(fakeserver.Mute)
	for n := range int64(3) {
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := do(ctx, t, p, text("")); left <- err }()
		eventually(t, "the call is in flight", func() bool { return p.conn.Load().inFlight.Load() == n+1 })
		cancel()
		select {
		case err := <-left:
			if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnsent) {
				t.Errorf("a call whose context ended on the way: %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("a call goes on after its context")
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := do(ended, t, p, text("")); !errors.Is(err, ErrUnsent) || !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context had ended: %v, want it unsent", err)
	}
	if n := p.conn.Load().inFlight.Load(); n != 3 {
		t.Errorf("%d calls are in flight, want 3", n)
	}
}
