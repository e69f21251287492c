package reprisefiber3_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	reprise "github.com/reprise-go/reprise/core"
)

// Fiber's own 500 stands in for the response of an error handler that fails.
func TestR32ErrorHandlersThatFailAreAnswered500(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{ErrorHandler: func(fiber.Ctx, error) error { return errors.New("again") }})
	s := serve(t, app, chain(nil, nil, func(fiber.Ctx) error { return errors.New("broken") }))
	for range 2 {
		if got := s.Post("k"); got.Status != 500 || got.Body != "Internal Server Error" || got.Replayed {
			t.Errorf("got %+v", got)
		}
	}
	s.Ran(2)
}

// Fiber runs the layers of Use for a request that fasthttp could not read, and overwrites
// their response: the key would belong to a 404, or to a run without the body.
func TestR27RequestsThatWereNotReadDoNotRun(t *testing.T) {
	t.Parallel()
	const limit = 100
	for name, tt := range map[string]struct {
		request string
		status  int
	}{
		"a declared body over the limit": {fmt.Sprintf("Content-Length: %d\r\n\r\n%s", limit+1, strings.Repeat("x", limit+1)), 413},
		"a chunked body over the limit":  {"Transfer-Encoding: chunked\r\n\r\n70\r\n" + strings.Repeat("x", 0x70) + "\r\n0\r\n\r\n", 413},
		"a form over the limit":          {"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\n\r\n--b--\r\n", 413},
		"a forbidden trailer":            {"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nContent-Length: 4\r\n\r\n", 400},
		"an invalid trailer":             {"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX\x00: 4\r\n\r\n", 400},
	} {
		app := fiber.New(fiber.Config{BodyLimit: limit})
		s := serve(t, app, func(s *service, protect fiber.Handler) {
			app.Use("/x", protect)
			app.Use("/x", func(c fiber.Ctx) error {
				s.Runs.Add(1)
				return c.SendString("ran")
			})
		})
		if got := s.Do("POST /x HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\n" + tt.request); got.Status != tt.status {
			t.Errorf("%s: got %+v", name, got)
		}
		s.Ran(0)
		if got := s.Post("k"); got.Status != http.StatusOK || got.Replayed { // the key is free
			t.Errorf("%s: the correct request got %+v", name, got)
		}
		s.Ran(1)
	}
}

// fasthttp tells the trailer section that it refused from one that it read for the first
// request of a connection only. No route gets such a request, so its key stays free.
func TestR27bRefusedTrailersBehindAnotherRequestStoreNothing(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	s := serve(t, app, func(s *service, protect fiber.Handler) {
		app.Use("/x", protect)
		app.Use("/x", func(c fiber.Ctx) error { return c.Next() })
		app.Post("/x", func(c fiber.Ctx) error {
			s.Runs.Add(1)
			return c.SendString("ran")
		})
	})
	const head = "POST /x HTTP/1.1\r\nHost: test\r\nIdempotency-Key: "
	c := s.Dial(head + "first\r\nContent-Length: 4\r\n\r\nbody" +
		head + "k\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nContent-Length: 4\r\n\r\n")
	if first, second := c.Receive(), c.Receive(); first.Status != http.StatusOK || second.Status != http.StatusBadRequest {
		t.Errorf("got %+v and %+v", first, second)
	}
	s.Ran(1)
	if got := s.Post("k"); got.Status != http.StatusOK || got.Replayed {
		t.Errorf("the correct request got %+v", got)
	}
	s.Ran(2)
}

// A handler that drops the connection made no response that a retry could get.
func TestR33DroppedConnectionsAreNotReplayed(t *testing.T) {
	t.Parallel()
	for preset, runs := range map[reprise.Preset]int64{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
		s := serveOne(t, preset, nil, nil, func(c fiber.Ctx) error { return c.Drop() })
		if first := s.Post("k"); first.Err == nil {
			t.Errorf("the first client got %+v", first)
		}
		again := s.Retry("k")
		if preset == reprise.AtMostOnce && (again.Status != http.StatusConflict || !strings.Contains(again.Body, "result-unavailable")) {
			t.Errorf("the retry got %+v", again)
		}
		s.Ran(runs)
	}
}
