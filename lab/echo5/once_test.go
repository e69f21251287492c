package labecho5_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	repriseecho5 "github.com/reprise-go/reprise/adapters/echo5"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

// failing is a handler, and the error handler of its instance, nil for Echo's own.
type failing struct {
	handler echo.HandlerFunc
	onError echo.HTTPErrorHandler
}

type once = stack.Case[echo.MiddlewareFunc, failing]

// bodyLog is a layer that keeps a copy of each body, and leaves its writer in the
// context.
func bodyLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		c.SetResponse(echo.NewResponse(&copyingWriter{ResponseWriter: c.Response()}, c.Logger()))
		return next(c)
	}
}

type copyingWriter struct {
	http.ResponseWriter

	body bytes.Buffer
}

func (w *copyingWriter) Write(p []byte) (int, error) {
	w.body.Write(p)
	return w.ResponseWriter.Write(p)
}

type userKey struct{}

// contexts are the ways in which handlers give their request another context.
var contexts = map[string]func(*echo.Context){
	"a value": func(c *echo.Context) {
		c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), userKey{}, "ann")))
	},
	"the background": func(c *echo.Context) {
		c.SetRequest(c.Request().WithContext(context.WithValue(context.Background(), userKey{}, "ann")))
	},
	"a deadline": func(c *echo.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(context.Background()), 5*time.Second)
		context.AfterFunc(c.Request().Context(), cancel)
		c.SetRequest(c.Request().WithContext(ctx))
	},
	"another request": func(c *echo.Context) {
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, "/elsewhere", http.NoBody)
		c.SetRequest(r)
	},
	"a foreign store": func(c *echo.Context) { c.Set("github.com/reprise-go/reprise", "ours") },
}

// onceCases has the stacks that ran twice or were answered wrongly at some time.
func onceCases() map[string]once {
	created := func(c *echo.Context) error { return c.JSON(http.StatusCreated, map[string]any{"n": 1}) }
	cases := map[string]once{
		"an error after the response": {Handler: failing{handler: func(c *echo.Context) error {
			_ = created(c)
			return errors.New("the mail was not sent")
		}}},
	}
	handled := middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		HandleError: true, LogStatus: true, LogValuesFunc: func(*echo.Context, middleware.RequestLoggerValues) error { return nil },
	})
	dump := middleware.BodyDump(func(*echo.Context, []byte, []byte, error) {})
	for name, layer := range map[string]echo.MiddlewareFunc{"BodyDump": dump, "RequestLogger": handled} {
		for answer, onError := range map[string]echo.HTTPErrorHandler{
			"an envelope": func(c *echo.Context, err error) { _ = c.JSON(http.StatusOK, map[string]any{"error": err.Error()}) },
			"a redirect":  func(c *echo.Context, _ error) { _ = c.Redirect(http.StatusSeeOther, "/failed") },
		} {
			cases[name+" and "+answer] = once{
				Layers: []echo.MiddlewareFunc{layer},
				Handler: failing{func(*echo.Context) error { return errors.New("no stock") }, func(c *echo.Context, err error) {
					if r, unwrapped := echo.UnwrapResponse(c.Response()); unwrapped == nil && !r.Committed {
						onError(c, err)
					}
				}},
			}
		}
	}
	for name, layer := range map[string]echo.MiddlewareFunc{"Gzip": middleware.Gzip(), "BodyDump": dump, "a body log": bodyLog} {
		for way, change := range contexts {
			cases[name+" and "+way] = once{Layers: []echo.MiddlewareFunc{layer}, Handler: failing{handler: func(c *echo.Context) error {
				change(c)
				return created(c)
			}}}
		}
	}
	return cases
}

func TestOrdinaryStacksRunOnce(t *testing.T) {
	t.Parallel()
	stack.RunOnce(t, onceCases(), func(t *testing.T, guard *protocol.Guard, c once, ran func(context.Context)) string {
		t.Helper()
		e := echo.New()
		e.Logger = slog.New(slog.DiscardHandler)
		if c.Handler.onError != nil {
			e.HTTPErrorHandler = c.Handler.onError
		}
		if guard != nil {
			e.Use(repriseecho5.Middleware(guard, repriseecho5.Unscoped))
		}
		e.Use(c.Layers...)
		e.POST("/", func(c2 *echo.Context) error {
			ran(c2.Request().Context())
			return c.Handler.handler(c2)
		})
		return stack.Serve(t, e)
	})
}
