package reprisefiber_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v2"
	recovery "github.com/gofiber/fiber/v2/middleware/recover"

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

func TestR16ReplayHasTheMediaTypeOfTheFirstResponse(t *testing.T) {
	t.Parallel()
	const standard = "text/plain; charset=utf-8"
	bare := func(c *fiber.Ctx) error { return c.Send([]byte("body")) }
	outer := func(c *fiber.Ctx) error {
		c.Set("Content-Type", "text/outer")
		return c.Next()
	}
	for name, tc := range map[string]struct {
		config  fiber.Config
		outside []fiber.Handler
		h       fiber.Handler
		want    string
	}{
		"the default":         {h: bare, want: standard},
		"no default":          {h: bare, config: fiber.Config{DisableDefaultContentType: true}},
		"of an outer layer":   {h: bare, outside: []fiber.Handler{outer}, want: "text/outer"},
		"of nothing":          {h: func(*fiber.Ctx) error { return nil }},
		"of the handler":      {h: func(c *fiber.Ctx) error { return c.Type("json").Send([]byte("1")) }, want: "application/json"},
		"the default, set":    {h: func(c *fiber.Ctx) error { c.Set("Content-Type", standard); return nil }, want: standard},
		"and none with a 204": {h: func(c *fiber.Ctx) error { return c.Status(204).Send([]byte("x")) }},
		"a 204 with a length": {h: func(c *fiber.Ctx) error {
			c.Set("Content-Length", "1")
			return c.SendStatus(204)
		}, want: standard},
		"and none with a 304": {h: func(c *fiber.Ctx) error { return c.Status(304).Send([]byte("x")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, options{fiber: tc.config}, handle(tc.h, tc.outside...))
			if first := s.wantReplay(t, request("", key("k"))); first.header.Get("Content-Type") != tc.want {
				t.Errorf("the media type is %q, want %q", first.header.Get("Content-Type"), tc.want)
			}
		})
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

func TestR33PanicsLeaveNoPartialResponse(t *testing.T) {
	t.Parallel()
	h := func(c *fiber.Ctx) error {
		c.Set("X-Made", "half")
		if c.Get("X-Half") != "" {
			_, _ = c.WriteString("half of it")
		}
		panic("broken")
	}
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		for name, half := range map[string]string{"before a byte": "", "after bytes": "yes"} {
			t.Run(fmt.Sprint(preset, name), func(t *testing.T) {
				t.Parallel()
				s := serve(t, options{guard: protocol.Config{Preset: preset}}, handle(h, recovery.New()))
				raw := request("", key("k"), "X-Half: "+half)
				first := s.do(t, raw)
				if first.status != 500 || first.body != "broken" || first.header.Get("X-Made") != "" {
					t.Errorf("the recovery answers %d %q %v", first.status, first.body, first.header)
				}
				second := s.do(t, raw)
				switch {
				case preset == reprise.Recoverable:
					s.wantRuns(t, 2)
				case half != "":
					s.wantRuns(t, 1)
					second.want(t, 409, "result-unavailable")
				default:
					s.wantRuns(t, 1)
					if second.status != 500 || second.body != "" || second.header.Get(replayed) != "true" {
						t.Errorf("the retry gets %d %q", second.status, second.body)
					}
				}
			})
		}
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

func TestScopeIsCopied(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := make(map[string]bool)
	observer := reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
		if e.Kind == reprise.EventDeclared {
			return // of no request
		}
		mu.Lock()
		defer mu.Unlock()
		seen[e.Scope] = true
	})
	s := serve(t, options{
		engine: reprise.Config{Observer: observer},
		scope:  func(c *fiber.Ctx) (string, error) { return c.Get("X-Tenant"), nil },
	}, handle(func(c *fiber.Ctx) error {
		c.Request().Header.Set("X-Tenant", "BBBB") // as another request on the connection would
		return nil
	}))
	s.do(t, request("", key("k"), "X-Tenant: aaaa"))
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 {
		t.Errorf("one attempt had %d scopes", len(seen))
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
