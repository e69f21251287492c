package reprisefiber_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/timeout"
	"github.com/valyala/fasthttp"

	"github.com/reprise-go/reprise/adapters/internal/fasthttp/harness"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// reusing is a host that gives one context to all requests.
func reusing(app *fiber.App) harness.Host {
	serve, ctx, mu := app.Handler(), new(fasthttp.RequestCtx), new(sync.Mutex)
	return harness.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		ctx.ResetUserValues()
		ctx.Request.Reset()
		ctx.Response.Reset()
		ctx.Request.Header.SetMethod(r.Method)
		ctx.Request.SetRequestURI(r.RequestURI)
		for name := range r.Header {
			ctx.Request.Header.Set(name, r.Header.Get(name))
		}
		serve(ctx)
		w.WriteHeader(ctx.Response.StatusCode())
		_, _ = w.Write(ctx.Response.Body())
	}))
}

const short = 20 * time.Millisecond

// A chain that outlives the timeout of Fiber v2 finds another request in its context. It
// has no response to keep, and leaves that of the other request as it is.
func TestChainsWhoseContextServesAnotherRequestAreCut(t *testing.T) {
	t.Parallel()
	harness.SkipRaces(t)
	for on, host := range map[string]func(*fiber.App) harness.Host{"Fiber's server": fibers, "a context for all": reusing} {
		for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
			proceed, ended, within := make(chan struct{}), make(chan struct{}), make(chan struct{})
			s := serve(t, options{on: host, guard: protocol.Config{Preset: preset}}, func(s *service) {
				s.app.Get("/y", func(c *fiber.Ctx) error { // the other request
					close(within)
					<-ended
					return c.SendString("of another")
				})
				late := timeout.New(func(c *fiber.Ctx) error { //nolint:staticcheck // as deprecated as it is
					defer close(ended)
					return c.Next()
				}, short)
				outside := func(c *fiber.Ctx) error {
					if s.Runs.Load() > 0 { // the retry, which a busy machine may delay
						return c.Next()
					}
					return late(c)
				}
				s.app.Post("/x", outside, s.protect, s.counted(func(c *fiber.Ctx) error {
					if s.Runs.Load() == 1 {
						<-proceed
						return nil
					}
					return c.SendString("in time")
				}))
			})
			conn := s.Dial(harness.Request("", harness.Key("k")))
			if got := conn.Receive(); got.Status != fiber.StatusRequestTimeout {
				t.Errorf("%s: the client of the late handler gets %d %s", on, got.Status, got.Body)
			}
			conn.Send("GET /y HTTP/1.1\r\nHost: test\r\n\r\n")
			<-within
			close(proceed)
			if other := conn.Receive(); other.Status != fiber.StatusOK || other.Body != "of another" {
				t.Errorf("%s: the other request gets %d %s", on, other.Status, other.Body)
			}
			again := s.Do(harness.Request("", harness.Key("k")))
			if preset == reprise.AtMostOnce {
				again.Want(t, 409, "result-unavailable")
			} else if again.Body != "in time" {
				t.Errorf("%s: the retry gets %d %s", on, again.Status, again.Body)
			}
		}
	}
}
