package reprisefiber_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestMiddlewareNeedsAGuardAndAScope(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(){
		"guard": func() { reprisefiber.Middleware(nil, reprisefiber.Unscoped) },
		"scope": func() { reprisefiber.Middleware(new(protocol.Guard), nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("it is made without a %s", name)
				}
			}()
			build()
		}()
	}
}

func TestR32ErrorsAreTheResponsesOfTheErrorHandler(t *testing.T) {
	t.Parallel()
	own := func(c *fiber.Ctx, err error) error { return c.Status(409).SendString("own: " + err.Error()) }
	s := serve(t, options{}, func(s *service) {
		fail := s.counted(func(*fiber.Ctx) error { return fiber.NewError(404, "no order") })
		s.app.Post("/x", s.protect, fail)
		mounted := fiber.New(fiber.Config{ErrorHandler: own})
		mounted.Post("/y", s.protect, fail)
		s.app.Mount("/mounted", mounted)
		broken := fiber.New(fiber.Config{ErrorHandler: func(*fiber.Ctx, error) error { return fiber.ErrTeapot }})
		broken.Post("/y", s.protect, fail)
		s.app.Mount("/broken", broken)
	})
	for path, want := range map[string]answer{
		"/x": {status: 404, body: "no order"}, "/mounted/y": {status: 409, body: "own: no order"},
	} {
		first := s.wantReplay(t, strings.Replace(request("", key(path)), "/x", path, 1))
		if first.status != want.status || first.body != want.body {
			t.Errorf("%s: %d %s, want %d %s", path, first.status, first.body, want.status, want.body)
		}
	}
	s.wantRuns(t, 2)
	if a := s.do(t, strings.Replace(request("", key("broken")), "/x", "/broken/y", 1)); a.status != 500 {
		t.Errorf("an error handler that fails answers %d, want Fiber's 500", a.status)
	}
}

func TestRecoveryOutsideFindsItsResponse(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]fiber.Handler{
		"of bytes":    func(c *fiber.Ctx) error { return c.SendString("half of it") },
		"of a stream": func(c *fiber.Ctx) error { return c.SendStream(strings.NewReader("half of it")) },
	} {
		s := serve(t, options{}, handle(func(c *fiber.Ctx) error {
			c.Set("X-Made", "half")
			panic(h(c))
		}, func(c *fiber.Ctx) error {
			defer func() {
				_ = recover()
				c.Status(503)
			}()
			c.Set("X-Outer", "outer")
			return c.Next()
		}))
		a := s.do(t, request("", key("k")))
		if a.status != 503 || a.body != "" || a.header.Get("X-Made") != "" || a.header.Get("X-Outer") != "outer" {
			t.Errorf("a body %s: %d %q %v", name, a.status, a.body, a.header)
		}
	}
}

func TestR33ResponsesOfATimeoutAreNotKept(t *testing.T) {
	t.Parallel()
	s := serve(t, options{}, handle(func(c *fiber.Ctx) error {
		c.Context().TimeoutErrorWithCode("too late", 503)
		return c.SendString("not sent")
	}))
	for range 2 {
		if a := s.do(t, request("", key("k"))); a.status != 503 || a.body != "too late" {
			t.Errorf("got %d %q", a.status, a.body)
		}
	}
	s.wantRuns(t, 2)
}

// A middleware that stands twice in one chain, for different principals, has two runs and
// finds each.
func TestMiddlewaresNest(t *testing.T) {
	t.Parallel()
	principal := func(c *fiber.Ctx) (string, error) { return fmt.Sprint("principal ", c.Locals("principal")), nil }
	s := serve(t, options{scope: principal}, func(s *service) {
		s.app.Use(s.protect)
		s.app.Post("/x", func(c *fiber.Ctx) error {
			c.Locals("principal", "inner")
			before, _ := reprise.AttemptFrom(c.Context())
			err := c.Next()
			if after, ok := reprise.AttemptFrom(c.Context()); !ok || after != before {
				t.Error("the outer run is lost after the inner one")
			}
			return err
		}, s.protect, s.counted(echo))
	})
	s.wantReplay(t, request("body", key("k")))
	s.wantRuns(t, 1)
}
