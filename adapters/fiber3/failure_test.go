package reprisefiber3_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// Fiber's own 500 stands in for the response of an error handler that fails.
func TestR32ErrorHandlersThatFailAreAnswered500(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{ErrorHandler: func(fiber.Ctx, error) error { return errors.New("again") }})
	s := serve(t, app, reprise.Config{}, protocol.Config{}, chain(nil, nil, func(fiber.Ctx) error { return errors.New("broken") }))
	for range 2 {
		if got := s.post("k"); got.status != 500 || got.body != "Internal Server Error" || got.replayed {
			t.Errorf("got %+v", got)
		}
	}
	s.ran(2)
}

// Fiber runs the layers of Use for a request that fasthttp could not read, and overwrites
// their response: the key would belong to a 404, or to a run without the body.
func TestR27RequestsThatWereNotReadDoNotRun(t *testing.T) {
	t.Parallel()
	const limit = 100
	for name, tt := range map[string]struct {
		request string
		status  string
	}{
		"a declared body over the limit": {fmt.Sprintf("Content-Length: %d\r\n\r\n%s", limit+1, strings.Repeat("x", limit+1)), "413"},
		"a chunked body over the limit":  {"Transfer-Encoding: chunked\r\n\r\n70\r\n" + strings.Repeat("x", 0x70) + "\r\n0\r\n\r\n", "413"},
		"a form over the limit":          {"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\n\r\n--b--\r\n", "413"},
		"a forbidden trailer":            {"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nContent-Length: 4\r\n\r\n", "400"},
		"an invalid trailer":             {"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX\x00: 4\r\n\r\n", "400"},
	} {
		app := fiber.New(fiber.Config{BodyLimit: limit})
		s := serve(t, app, reprise.Config{}, protocol.Config{}, func(s *service, protect fiber.Handler) {
			app.Use("/x", protect)
			app.Use("/x", func(c fiber.Ctx) error {
				s.runs.Add(1)
				return c.SendString("ran")
			})
		})
		if got := s.talk("POST /x HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\n" + tt.request); !strings.HasPrefix(got, "HTTP/1.1 "+tt.status) {
			t.Errorf("%s: got %q", name, got)
		}
		s.ran(0)
		if got := s.post("k"); got.status != http.StatusOK || got.replayed { // the key is free
			t.Errorf("%s: the correct request got %+v", name, got)
		}
		s.ran(1)
	}
}

// fasthttp tells the trailer section that it refused from one that it read for the first
// request of a connection only. No route gets such a request, so its key stays free.
func TestR27bRefusedTrailersBehindAnotherRequestStoreNothing(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	s := serve(t, app, reprise.Config{}, protocol.Config{}, func(s *service, protect fiber.Handler) {
		app.Use("/x", protect)
		app.Use("/x", func(c fiber.Ctx) error { return c.Next() })
		app.Post("/x", func(c fiber.Ctx) error {
			s.runs.Add(1)
			return c.SendString("ran")
		})
	})
	const head = "POST /x HTTP/1.1\r\nHost: test\r\nIdempotency-Key: "
	got := s.talk(head + "first\r\nContent-Length: 4\r\n\r\nbody" +
		head + "k\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nContent-Length: 4\r\n\r\n")
	if first, second, ok := strings.Cut(got, "ran"); !ok || !strings.HasPrefix(first, "HTTP/1.1 200") || !strings.HasPrefix(second, "HTTP/1.1 400") {
		t.Errorf("got %q", got)
	}
	s.ran(1)
	if got := s.post("k"); got.status != http.StatusOK || got.replayed {
		t.Errorf("the correct request got %+v", got)
	}
	s.ran(2)
}

// A handler that drops the connection made no response that a retry could get.
func TestR33DroppedConnectionsAreNotReplayed(t *testing.T) {
	t.Parallel()
	for preset, runs := range map[reprise.Preset]int64{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
		s := serveOne(t, preset, nil, nil, func(c fiber.Ctx) error { return c.Drop() })
		if first := s.post("k"); first.err == nil {
			t.Errorf("the first client got %+v", first)
		}
		again := s.retry("k")
		if preset == reprise.AtMostOnce && (again.status != http.StatusConflict || !strings.Contains(again.body, "result-unavailable")) {
			t.Errorf("the retry got %+v", again)
		}
		s.ran(runs)
	}
}
