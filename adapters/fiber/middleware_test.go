package reprisefiber_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	"github.com/reprise-go/reprise/adapters/internal/fasthttp/harness"
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
	for path, want := range map[string]harness.Answer{
		"/x": {Status: 404, Body: "no order"}, "/mounted/y": {Status: 409, Body: "own: no order"},
	} {
		first := s.Twice(strings.Replace(harness.Request("", harness.Key(path)), "/x", path, 1))
		if first.Status != want.Status || first.Body != want.Body {
			t.Errorf("%s: %d %s, want %d %s", path, first.Status, first.Body, want.Status, want.Body)
		}
	}
	s.Ran(2)
	if a := s.Do(strings.Replace(harness.Request("", harness.Key("broken")), "/x", "/broken/y", 1)); a.Status != 500 {
		t.Errorf("an error handler that fails answers %d, want Fiber's 500", a.Status)
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
		a := s.Post("k")
		if a.Status != 503 || a.Body != "" || a.Header.Get("X-Made") != "" || a.Header.Get("X-Outer") != "outer" {
			t.Errorf("a body %s: %d %q %v", name, a.Status, a.Body, a.Header)
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
		if a := s.Post("k"); a.Status != 503 || a.Body != "too late" {
			t.Errorf("got %d %q", a.Status, a.Body)
		}
	}
	s.Ran(2)
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
	s.Twice(harness.Request("body", harness.Key("k")))
	s.Ran(1)
}
