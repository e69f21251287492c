package reprisefiber3_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/reprise-go/reprise/adapters/internal/fasthttp/harness"
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
		first, again := s.Post("k"), s.Retry("k")
		if first.Err != nil || first.Body != "streamed" || !strings.Contains(again.Body, "result-unavailable") {
			t.Errorf("%s: got %+v and then %+v", name, first, again)
		}
		s.Ran(1)
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
		conn := s.Dial(harness.Request("body", harness.Key("k")))
		<-started
		conn.Leave()
		close(left)
		switch again := s.Retry("k"); {
		case name == "text" && (!again.Replayed || again.Status != fiber.StatusCreated || len(again.Body) != 256<<10):
			t.Errorf("%s: the retry got %d, replayed: %t", name, again.Status, again.Replayed)
		case name == "a stream" && !strings.Contains(again.Body, "result-unavailable"):
			t.Errorf("%s: the retry got %d, %.100q", name, again.Status, again.Body)
		}
		s.Ran(1)
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
			first, again := s.Post("k"), s.Retry("k")
			if first.Err != nil || first.Status != fiber.StatusCreated || !again.Replayed || again.Status != first.Status || again.Body != first.Body {
				t.Errorf("%s, %s: got %+v and then %+v", name, kind, first, again)
			}
			if told == nil || !strings.HasSuffix(told.Error(), "too late to say") {
				t.Errorf("%s, %s: the policy is told of %v", name, kind, told)
			}
			s.Ran(1)
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
		if got := s.Post("k"); got.Status != fiber.StatusInternalServerError || got.Replayed {
			t.Errorf("got %+v", got)
		}
	}
	s.Ran(2)
}
