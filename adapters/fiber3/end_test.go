package reprisefiber3_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// A stream that a handler sent itself by End was read without the adapter: it has no
// response to keep.
func TestR33StreamsSentByEndAreNotReplayedEmpty(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]fiber.Handler{
		"with a length": func(c fiber.Ctx) error { return errors.Join(c.SendStream(strings.NewReader("streamed"), 8), c.End()) },
		"in chunks": func(c fiber.Ctx) error {
			return errors.Join(c.Status(fiber.StatusCreated).SendStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString("streamed") }), c.End())
		},
		"of unknown length": func(c fiber.Ctx) error {
			return errors.Join(c.SendStream(io.MultiReader(strings.NewReader("streamed"))), c.End())
		},
	} {
		s := serveOne(t, reprise.Recoverable, nil, nil, h)
		first, again := s.post("k"), s.retry("k")
		if first.err != nil || first.body != "streamed" || !strings.Contains(again.body, "result-unavailable") {
			t.Errorf("%s: got %+v and then %+v", name, first, again)
		}
		s.ran(1)
	}
}

// A client that left makes the End of a handler fail, and not its operation.
func TestR23EndForAClientThatLeftFailsNoOperation(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(fiber.Ctx, string) error{
		"text":     fiber.Ctx.SendString,
		"a stream": func(c fiber.Ctx, text string) error { return c.SendStream(strings.NewReader(text), len(text)) },
	} {
		started, left := make(chan struct{}, 2), make(chan struct{})
		s := serveOne(t, reprise.Recoverable, nil, nil, func(c fiber.Ctx) error {
			started <- struct{}{}
			<-left
			return errors.Join(send(c.Status(fiber.StatusCreated), strings.Repeat("made", 64<<10)), c.End())
		})
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\nContent-Length: 4\r\n\r\nbody"); err != nil {
			t.Fatal(err)
		}
		<-started
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // leaves at once
			t.Fatal(err)
		}
		_ = conn.Close()
		close(left)
		switch again := s.retry("k"); {
		case name == "text" && (!again.replayed || again.status != fiber.StatusCreated || len(again.body) != 256<<10):
			t.Errorf("%s: the retry got %d, replayed: %t", name, again.status, again.replayed)
		case name == "a stream" && !strings.Contains(again.body, "result-unavailable"):
			t.Errorf("%s: the retry got %d, %.100q", name, again.status, again.body)
		}
		s.ran(1)
	}
}

// A handler that returns an error after it sent its response has one: the error is beside
// it.
func TestR33dErrorsBehindEndChangeNoResponse(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(fiber.Ctx) error{
		"text":    func(c fiber.Ctx) error { return c.Status(fiber.StatusCreated).SendString("made") },
		"nothing": func(c fiber.Ctx) error { return c.Status(fiber.StatusCreated).SendString("") },
		"text, whose End comes twice": func(c fiber.Ctx) error {
			return errors.Join(c.Status(fiber.StatusCreated).SendString("made"), c.End())
		},
	} {
		for kind, open := range stores {
			var told error
			policy := protocol.Config{Keep: protocol.Keeping{Decide: func(e protocol.Ending) protocol.Decision {
				told = e.Reported
				return protocol.ByPreset
			}}}
			s := serveOn(t, fibers, fiber.New(), open(), policy, chain(nil, nil, func(c fiber.Ctx) error {
				return errors.Join(send(c), c.End(), errors.New("too late to say"))
			}))
			first, again := s.post("k"), s.retry("k")
			if first.err != nil || first.status != fiber.StatusCreated || !again.replayed || again.status != first.status || again.body != first.body {
				t.Errorf("%s, %s: got %+v and then %+v", name, kind, first, again)
			}
			if told == nil || !strings.HasSuffix(told.Error(), "too late to say") {
				t.Errorf("%s, %s: the policy is told of %v", name, kind, told)
			}
			s.ran(1)
		}
	}
}

// A handler that gives up because it could not write to its client, before it made a
// response, failed like any other.
func TestErrorsOfTheConnectionBeforeTheResponseReleaseTheKey(t *testing.T) {
	t.Parallel()
	s := serveOne(t, reprise.Recoverable, nil, nil, func(c fiber.Ctx) error {
		ctx := c.RequestCtx()
		return &net.OpError{Op: "write", Source: ctx.LocalAddr(), Addr: ctx.RemoteAddr(), Err: io.ErrClosedPipe} // as that of SendEarlyHints
	})
	for range 2 {
		if got := s.post("k"); got.status != fiber.StatusInternalServerError || got.replayed {
			t.Errorf("got %+v", got)
		}
	}
	s.ran(2)
}
