package pipeline

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
)

// A caller itself makes the writes that the operating system takes at once.
func TestCallerWritesOnlySmallCallsItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		connected bool
		inFlight  int64
		size      int
		want      bool
	}{
		{"a small call", true, 0, largestInline, true},
		{"a larger one", true, 0, largestInline + 1, false},
		{"behind another", true, 1, 1, false},
		{"without a connection", false, 0, 1, false},
	} {
		p := &pipeline{}
		if c.connected {
			conn := &conn{}
			conn.inFlight.Store(c.inFlight)
			p.conn.Store(conn)
		}
		if got := p.sendsInline(&queued{out: make([]byte, c.size)}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// There is one dial at a time, none where there is a connection, and none right after one
// that failed.
func TestPipelineDialsOnceAndThenWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prepare func(p *pipeline)
		want    bool
	}{
		{"at first", func(*pipeline) {}, true},
		{"one dials", func(p *pipeline) { p.dialing = true }, false},
		{"there is a connection", func(p *pipeline) { p.conn.Store(&conn{Conn: &recorder{}}) }, false},
		{"one failed just now", func(p *pipeline) { p.redial = time.Now().Add(time.Hour) }, false},
		{"one failed some time ago", func(p *pipeline) { p.redial = time.Now() }, true},
	} {
		var dials atomic.Int64
		client := redis.NewClient(&redis.Options{DialTimeout: time.Second, ReadTimeout: time.Second, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < time.Second {
				t.Errorf("%s: a dial until %v, want the time of a dial and of a reply", c.name, deadline)
			}
			dials.Add(1)
			return nil, errors.New("connection refused")
		}})
		t.Cleanup(func() { _ = client.Close() })
		all := New(client)
		p := all.of(client)
		c.prepare(p)
		p.connect()
		all.working.Wait()
		if got := dials.Load(); got > 0 != c.want { // go-redis may try again
			t.Errorf("%s: %d dials, want some: %v", c.name, got, c.want)
		}
		if pause := time.Until(p.redial); c.want && (pause <= 0 || pause > firstRedial) {
			t.Errorf("%s: the next dial is in %v, want %v", c.name, pause, firstRedial)
		}
	}
}

// A pipeline without a connection takes no call and does not dial until it is told to.
// With one, it leaves a call a second to the client, which knows whether it was closed.
func TestCallsAreLeftToTheClient(t *testing.T) {
	t.Parallel()
	s := startServer(t, answering(fakeserver.Bulk("")))
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	all := New(client)
	p := all.of(client)
	if _, err := p.do(t.Context(), text("")); !errors.Is(err, errNotTaken) {
		t.Errorf("without a connection: %v, want errNotTaken", err)
	}
	all.working.Wait()
	if p.conn.Load() != nil {
		t.Error("it dialled for a call")
	}
	p.connect()
	eventually(t, "it dials", func() bool { return p.conn.Load() != nil })
	if _, err := p.do(t.Context(), commandless{}); !errors.Is(err, errNotTaken) {
		t.Errorf("a call of no commands: %v, want errNotTaken", err)
	}
	left := 0
	eventually(t, "a second is over", func() bool {
		for range 10 {
			if _, err := p.do(t.Context(), text("")); errors.Is(err, errNotTaken) {
				left++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return left >= 2
	})
	all.Close()
	if _, err := p.do(t.Context(), text("")); !errors.Is(err, errNotTaken) {
		t.Errorf("after the end: %v, want errNotTaken", err)
	}
}

// commandless is a call that only the client can send.
type commandless struct{}

func (commandless) AppendTo(b []byte) (out []byte, replies string) { return b, "" }

// A connection is used as long as the client's connections may be.
func TestConnectionIsReplacedInTime(t *testing.T) {
	t.Parallel()
	for lifetime, replaced := range map[time.Duration]bool{0: false, time.Nanosecond: true, time.Hour: false} {
		s := startServer(t, answering(fakeserver.Bulk("")))
		p := connect(t, s, func(o *redis.Options) { o.ConnMaxLifetime = lifetime })
		if replaced {
			eventually(t, "another connection is used", func() bool {
				before := s.last.Load()
				must(t, p, "")
				return s.last.Load() != before
			})
			continue
		}
		c := p.conn.Load()
		if must(t, p, ""); c.isEnded() {
			t.Errorf("with a lifetime of %v it is replaced after one call", lifetime)
		}
	}
}

// A server may revoke the authentication of a connection before it ends the connection.
func TestConnectionWithoutAuthenticationIsReplaced(t *testing.T) {
	t.Parallel()
	s := startServer(t, answering(fakeserver.Bulk("")))
	p := connect(t, s)
	s.answerPipeline("-NOAUTH Authentication required.\r\n")
	for i := range 10 {
		a, err := do(t.Context(), t, p, text(""))
		if failed := err != nil || a.Replies[0].Kind == Failure; failed != (i == 0) {
			t.Errorf("call %d: %+v, %v; want the first to fail", i, a.Replies[0], err)
		}
	}
}

// Calls that came together share a write, each with its own answer.
func TestLargeCallsShareAConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(_ int, command []string) string {
		name := command[1]
		if strings.Count(name, name[:1]) != len(name) {
			name = "mixed up"
		}
		return fakeserver.Bulk(name[:1])
	})
	p := connect(t, s)
	var calling sync.WaitGroup
	var together atomic.Int64
	for i := range 64 {
		calling.Go(func() {
			letter := string(rune('a' + i%26))
			a, err := do(t.Context(), t, p, text(strings.Repeat(letter, MaxPayload)))
			if err != nil || a.Replies[0].Text != letter {
				t.Errorf("%s was answered with %q, %v", letter, a.Replies[0].Text, err)
			}
			if a.Batch > 1 {
				together.Add(1)
			}
		})
	}
	calling.Wait()
	if together.Load() == 0 {
		t.Error("no two calls shared a write")
	}
	if n := s.last.Load(); n != 1 {
		t.Errorf("the last call was sent on connection %d", n)
	}
}
