package reprisefiber_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// eventually polls until ok.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	expired := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-expired:
			tb.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// line reads one line of a chunked body; it must be a separate chunk.
func (c *conn) line(tb testing.TB) string {
	tb.Helper()
	s, err := c.r.ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimRight(s, "\r\n")
}

func TestR34StreamsLeaveAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	s := serve(t, options{}, handle(func(c *fiber.Ctx) error {
		c.Set("X-Made", "stream")
		c.Status(201).Context().SetBodyStreamWriter(func(w *bufio.Writer) {
			_, _ = w.WriteString("first")
			_ = w.Flush()
			<-proceed
			_, _ = w.WriteString("second")
		})
		return nil
	}))
	c := s.dial(t)
	c.send(t, request("", key("k")))
	for c.line(t) != "first" { //nolint:revive // the header and the size of the chunk
	}
	early := s.do(t, request("", key("k")))
	early.want(t, 409, "in-progress")
	close(proceed)
	for c.line(t) != "0" { //nolint:revive // the second chunk
	}
	late := s.do(t, request("", key("k")))
	if late.status != 201 || late.body != "firstsecond" || late.header.Get("X-Made") != "stream" || late.header.Get(replayed) == "" {
		t.Errorf("the retry gets %d %q %v", late.status, late.body, late.header)
	}
	s.wantRuns(t, 1)
}

func TestR12StreamsAreReplayed(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]fiber.Handler{
		"of known length":   func(c *fiber.Ctx) error { return c.SendStream(strings.NewReader("body"), 4) },
		"of unknown length": func(c *fiber.Ctx) error { return c.SendStream(strings.NewReader("body")) },
		"empty":             func(c *fiber.Ctx) error { return c.SendStream(strings.NewReader("")) },
		"without a body":    func(c *fiber.Ctx) error { return c.Status(204).SendStream(strings.NewReader("body")) },
		"with another status than at first": func(c *fiber.Ctx) error {
			err := c.Status(204).SendStream(strings.NewReader("body"))
			c.Status(201)
			return err
		},
		"of known length, with another status than at first": func(c *fiber.Ctx) error {
			err := c.Status(304).SendStream(strings.NewReader("body"), 4)
			c.Status(201)
			return err
		},
		"empty, of known length": func(c *fiber.Ctx) error { return c.SendStream(strings.NewReader(""), 0) },
		"a file":                 func(c *fiber.Ctx) error { return c.SendFile("stream_test.go") },
		"then a plain body": func(c *fiber.Ctx) error {
			return errors.Join(c.SendStream(strings.NewReader("b")), c.SendString("body"))
		},
		"with trailer": func(c *fiber.Ctx) error { return errors.Join(withTrailer(c), c.SendStream(strings.NewReader("body"))) },
		"with a trailer that is announced twice": func(c *fiber.Ctx) error {
			return errors.Join(withTrailer(c), c.Response().Header.AddTrailer("X-Made"), c.SendStream(strings.NewReader("body")))
		},
		"with a trailer of two values": func(c *fiber.Ctx) error {
			err := withTrailer(c)
			c.Response().Header.Add("X-Made", "too")
			return errors.Join(err, c.SendStream(strings.NewReader("body")))
		},
		"with a trailer without a value": func(c *fiber.Ctx) error {
			return errors.Join(c.Response().Header.AddTrailer("X-Made"), c.SendStream(strings.NewReader("body")))
		},
		"with a length, and a trailer that is not sent": func(c *fiber.Ctx) error {
			return errors.Join(withTrailer(c), c.SendStream(strings.NewReader("body"), 4))
		},
		"with a plain body, and a trailer that is not sent": func(c *fiber.Ctx) error { return errors.Join(withTrailer(c), c.SendString("body")) },
		"with fields": func(c *fiber.Ctx) error {
			c.Set("X-Made", "here")
			return c.Status(201).SendStream(strings.NewReader("body"))
		},
		"with control field": func(c *fiber.Ctx) error { c.Set(replayed, "true"); return c.SendStream(strings.NewReader("body")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, options{}, handle(h))
			if first := s.wantReplay(t, request("", key("k"))); name == "with fields" && (first.status != 201 || first.header.Get("X-Made") != "here") {
				t.Errorf("the first answer is %d %v", first.status, first.header)
			}
			s.wantRuns(t, 1)
		})
	}
}

func withTrailer(c *fiber.Ctx) error {
	if err := c.Response().Header.SetTrailer("X-Made"); err != nil {
		return err
	}
	c.Set("X-Made", "late")
	return nil
}

func TestR35StreamsOverTheLimitLeaveWhole(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456789", 10_000)
	for name, size := range map[string]int{"of known length": len(body), "of unknown length": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, options{guard: protocol.Config{Limits: protocol.Limits{ResponseBody: 99_999}}}, handle(func(c *fiber.Ctx) error {
				return c.SendStream(strings.NewReader(body), size)
			}))
			if first := s.do(t, request("", key("k"))); first.body != body || first.err != nil {
				t.Errorf("the client gets %d bytes, %v", len(first.body), first.err)
			}
			second := s.do(t, request("", key("k")))
			if second.status != 200 || second.header.Get("Idempotency-Body") != "omitted" {
				t.Errorf("the retry gets %d %.50q", second.status, second.body)
			}
			s.wantRuns(t, 1)
		})
	}
}

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
			if first := s.do(t, request("", key("k"))); first.err == nil || !strings.HasPrefix(body, first.body) {
				t.Errorf("the client gets %d bytes, %v", len(first.body), first.err)
			}
			second := s.do(t, request("", key("k")))
			second.want(t, 409, "result-unavailable")
			s.wantRuns(t, 1)
		})
	}
}

func TestR23StreamsAreRecordedWithoutTheirClient(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	chunk := strings.Repeat("x", 10_000)
	s := serve(t, options{}, handle(func(c *fiber.Ctx) error {
		c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
			_, _ = w.WriteString("first")
			_ = w.Flush()
			<-gone
			for range 50 { // more than buffers hold
				if _, err := w.WriteString(chunk); err != nil || w.Flush() != nil {
					t.Error("the handler is told that its client is gone")
				}
			}
		})
		return nil
	}))
	c := s.dial(t)
	c.send(t, request("", key("k")))
	for c.line(t) != "first" { //nolint:revive // the header and the size of the chunk
	}
	c.Close()
	close(gone)
	var late answer
	eventually(t, "a replay", func() bool { late = s.do(t, request("", key("k"))); return late.status == 200 })
	if late.body != "first"+strings.Repeat(chunk, 50) || late.header.Get(replayed) == "" {
		t.Errorf("the retry gets %d bytes %v", len(late.body), late.header)
	}
	s.wantRuns(t, 1)
}

func TestStreamsWaitForTheCommit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body   io.Reader
		status int
		code   string
		cut    bool
	}{
		"whole":     {body: strings.NewReader("body"), status: 200},
		"too large": {body: strings.NewReader(strings.Repeat("x", 101)), status: 500, code: "response-too-large"},
		"broken":    {body: failing{Reader: strings.NewReader("body")}, status: 503, code: "not-applied"}, // no part of it was sent
	} {
		s := serve(t, options{store: adaptertest.Transacting(memstore.New()), guard: protocol.Config{Limits: protocol.Limits{ResponseBody: 100}}}, handle(func(c *fiber.Ctx) error {
			return c.SendStream(tc.body)
		}))
		a := s.do(t, request("", key("k")))
		if a.want(t, tc.status, tc.code); (a.err != nil) != tc.cut {
			t.Errorf("%s: reading the answer: %v", name, a.err)
		}
	}
}

// downStore cannot be reached.
type downStore struct{ store.Store }

func (downStore) Claim(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
	return store.ClaimResult{}, store.ErrUnavailable
}

func TestR40UnprotectedResponsesAreMarked(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]fiber.Handler{
		"plain":  echo,
		"stream": func(c *fiber.Ctx) error { return c.SendStream(strings.NewReader("body")) },
	} {
		s := serve(t, options{
			store: downStore{memstore.New()}, engine: reprise.Config{ClaimTimeout: 10 * time.Millisecond}, guard: protocol.Config{FailOpen: true},
		}, handle(h))
		if a := s.do(t, request("body", key("k"))); a.body != "body" || a.header.Get("Idempotency-Status") != "unprotected" {
			t.Errorf("%s: %d %q %v", name, a.status, a.body, a.header)
		}
	}
}

func TestR33StreamsThatAreTooLongAreCutAndNotReplayed(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456789", 1000)
	for name, limit := range map[string]int{"that could be kept": 1 << 20, "that cannot": 5000} {
		s := serve(t, options{guard: protocol.Config{Preset: reprise.AtMostOnce, Limits: protocol.Limits{ResponseBody: limit}}}, handle(func(c *fiber.Ctx) error {
			return c.SendStream(strings.NewReader(body), len(body)-1)
		}))
		c := s.dial(t)
		c.send(t, request("", key("k")))
		first := c.receive(t)
		if first.body != body[:len(body)-1] {
			t.Errorf("%s: the client gets %d bytes, %v", name, len(first.body), first.err)
		}
		if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 1 {
			t.Errorf("%s: the connection goes on with %.100q, %v", name, rest, err)
		}
		second := s.do(t, request("", key("k")))
		second.want(t, 409, "result-unavailable")
		s.wantRuns(t, 1)
	}
}

func TestR33LengthsThatAHandlerDeclaresAreCorrected(t *testing.T) {
	t.Parallel()
	s := serve(t, options{}, handle(func(c *fiber.Ctx) error {
		c.Set("Content-Length", "100")
		return c.SendString("short")
	}))
	if first := s.wantReplay(t, request("", key("k"))); first.body != "short" || first.header.Get("Content-Length") != "5" {
		t.Errorf("the client gets %q, %v", first.body, first.header)
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
		c := s.dial(t)
		c.send(t, request("", key("k")))
		if _, err := io.CopyN(io.Discard, c.r, 20_000); err != nil {
			t.Fatal(err)
		}
		c.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("%v: the handler streams for ever", preset)
		}
		eventually(t, "the summary", func() bool { return s.do(t, request("", key("k"))).body == `{"status":"completed"}` })
		s.wantRuns(t, 1)
	}
}
