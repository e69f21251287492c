package reprisefiber_test

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/reprise-go/reprise/adapters/internal/fasthttp/harness"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// failing is a stream that ends in an error, or in a panic.
type failing struct {
	io.Reader
	panics bool
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) && f.panics {
		panic("broken stream")
	} else if errors.Is(err, io.EOF) {
		err = errors.New("broken stream")
	}
	return n, err
}

func TestR33StreamsThatFailAreCutAndNotReplayed(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456789", 1000)
	broken := func(panics bool) io.Reader { return failing{strings.NewReader(body), panics} }
	for name, h := range map[string]fiber.Handler{
		"an error":                  func(c *fiber.Ctx) error { return c.SendStream(broken(false)) },
		"a panic":                   func(c *fiber.Ctx) error { return c.SendStream(broken(true)) },
		"an error in a known size":  func(c *fiber.Ctx) error { return c.SendStream(broken(false), len(body)+1) },
		"a panic in a known size":   func(c *fiber.Ctx) error { return c.SendStream(broken(true), len(body)+1) },
		"less than a known size":    func(c *fiber.Ctx) error { return c.SendStream(strings.NewReader(body), len(body)+1) },
		"less than a size too much": func(c *fiber.Ctx) error { return c.SendStream(strings.NewReader(body), 1<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, options{guard: protocol.Config{Preset: reprise.AtMostOnce, Limits: protocol.Limits{ResponseBody: 500_000}}}, handle(h))
			if first := s.Post("k"); first.Err == nil || !strings.HasPrefix(body, first.Body) {
				t.Errorf("the client gets %d bytes, %v", len(first.Body), first.Err)
			}
			second := s.Post("k")
			second.Want(t, 409, "result-unavailable")
			s.Ran(1)
		})
	}
}

// Where effects commit with the response, no part of a stream is sent before it ended.
func TestStreamsWaitForTheCommit(t *testing.T) {
	t.Parallel()
	s := serve(t, options{store: adaptertest.Transacting(memstore.New())}, handle(func(c *fiber.Ctx) error {
		return c.SendStream(failing{Reader: strings.NewReader("body")})
	}))
	a := s.Post("k")
	if a.Want(t, 503, "not-applied"); a.Err != nil {
		t.Errorf("reading the answer: %v", a.Err)
	}
}

func TestR33StreamsThatAreTooLongAreCutAndNotReplayed(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456789", 1000)
	for name, limit := range map[string]int{"that could be kept": 1 << 20, "that cannot": 5000} {
		s := serve(t, options{guard: protocol.Config{Preset: reprise.AtMostOnce, Limits: protocol.Limits{ResponseBody: limit}}}, handle(func(c *fiber.Ctx) error {
			return c.SendStream(strings.NewReader(body), len(body)-1)
		}))
		c := s.Dial(harness.Request("body", harness.Key("k")))
		first := c.Receive()
		if first.Body != body[:len(body)-1] {
			t.Errorf("%s: the client gets %d bytes, %v", name, len(first.Body), first.Err)
		}
		if rest, err := io.ReadAll(c.R); err != nil || len(rest) > 1 {
			t.Errorf("%s: the connection goes on with %.100q, %v", name, rest, err)
		}
		second := s.Post("k")
		second.Want(t, 409, "result-unavailable")
		s.Ran(1)
	}
}

// A stream that is not kept ends with its client, as it would without the middleware, and
// does not run again (R35).
func TestStreamsOverTheLimitEndWithTheirClient(t *testing.T) {
	t.Parallel()
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		ended := make(chan struct{}, 2)
		chunk := strings.Repeat("x", 1000)
		s := serve(t, options{guard: protocol.Config{Preset: preset, Limits: protocol.Limits{ResponseBody: 10_000}}}, handle(func(c *fiber.Ctx) error {
			c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
				defer func() { ended <- struct{}{} }()
				for {
					if _, err := w.WriteString(chunk); err != nil || w.Flush() != nil {
						return
					}
				}
			})
			return nil
		}))
		c := s.Dial(harness.Request("body", harness.Key("k")))
		if _, err := io.CopyN(io.Discard, c.R, 20_000); err != nil {
			t.Fatal(err)
		}
		c.Close()
		select {
		case <-ended:
		case <-time.After(harness.Patience):
			t.Fatalf("%v: the handler streams for ever", preset)
		}
		if a := s.Retry("k"); a.Body != `{"status":"completed"}` {
			t.Errorf("%v: the retry gets %d %s, want the summary", preset, a.Status, a.Body)
		}
		s.Ran(1)
	}
}
