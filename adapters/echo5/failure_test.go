package repriseecho5

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/labstack/echo/v5"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestR32ReturnedErrorIsTheResponseOfEcho(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.Use(b.guarded)
	for path, c := range map[string]struct {
		handler echo.HandlerFunc
		status  int
		body    string
	}{
		"/http":    {func(*echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "taken") }, 409, `{"message":"taken"}` + "\n"},
		"/wrapped": {func(*echo.Context) error { return echo.ErrForbidden.Wrap(errors.New("secret")) }, 403, `{"message":"Forbidden"}` + "\n"},
		"/bind": {func(c *echo.Context) error {
			var order struct {
				Amount int `json:"amount"`
			}
			return c.Bind(&order)
		}, 415, `{"message":"Unsupported Media Type"}` + "\n"},
		"/written": {func(c *echo.Context) error {
			_ = c.String(http.StatusNotFound, "no such order")
			return errors.New("only for the log")
		}, 404, "no such order"},
	} {
		b.POST(path, b.counted(c.handler))
		if first, _ := b.Twice("POST", path); first.Status != c.status || first.Body != c.body {
			t.Errorf("%s: %+v", path, first)
		}
	}
	b.Ran(4)
}

// A body whose source breaks off is a complete message without the middleware, and with
// it: its error is beside the response.
func TestR33dStreamThatBreaksOff(t *testing.T) {
	t.Parallel()
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		b := setup(t, protocol.Config{Preset: preset})
		b.POST("/stream", func(c *echo.Context) error {
			return c.Stream(http.StatusOK, "text/plain", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}, b.guarded)
		if bare, first := b.Send("POST", "/stream"), b.Send("POST", "/stream", "Idempotency-Key", "k"); first.Status != bare.Status || first.Body != bare.Body {
			t.Errorf("%v: answered %+v, and %+v without a key", preset, first, bare)
		}
		if again := b.Send("POST", "/stream", "Idempotency-Key", "k"); !again.Replayed() || again.Body != "half" {
			t.Errorf("%v: the retry got %+v", preset, again)
		}
	}
}

func TestR32ErrorHandlerOfTheService(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.HTTPErrorHandler = func(c *echo.Context, err error) {
		if response(t, c).Committed {
			t.Error("the response is committed before its error is handled")
		}
		c.Response().Header().Set("X-Handled", "1")
		_ = c.JSON(http.StatusUnprocessableEntity, map[string]any{"problem": err.Error()})
	}
	b.POST("/orders", b.counted(func(*echo.Context) error { return fmt.Errorf("order: %w", errors.New("no stock")) }), b.guarded)
	first, again := b.Twice("POST", "/orders")
	if first.Status != http.StatusUnprocessableEntity || first.Body != `{"problem":"order: no stock"}`+"\n" || again.Header.Get("X-Handled") != "1" {
		t.Errorf("%+v, %+v", first, again)
	}
	b.Ran(1)
}

// recovery acts as Echo's own recovery.
func recovery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%v", p)
			}
		}()
		return next(c)
	}
}

// A recovery outside finds its own response, with the header as it was before the
// handler. One inside turns the panic into an error that the handler returns: the client
// gets a response that had begun, and that response is kept.
func TestRecoveryOnBothSides(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for name, handler := range map[string]echo.HandlerFunc{
		"before": func(c *echo.Context) error {
			c.Response().Header().Set("X-Half", "1")
			panic("before a byte")
		},
		"after": func(c *echo.Context) error {
			c.Response().Header().Set("X-Half", "1")
			_ = c.String(http.StatusCreated, "half")
			panic("after a byte")
		},
	} {
		b.POST("/outside/"+name, handler, recovery, b.guarded)
		b.POST("/inside/"+name, handler, b.guarded, recovery)
	}
	for _, name := range []string{"before", "after"} {
		first, _ := b.Afresh("POST", "/outside/"+name)
		if first.Status != 500 || first.Header.Get("X-Half") != "" || !strings.Contains(first.Body, "Internal Server Error") {
			t.Errorf("%s: the recovery outside answered %+v", name, first)
		}
	}
	if first, _ := b.Twice("POST", "/inside/after"); first.Status != http.StatusCreated || first.Body != "half" {
		t.Errorf("the recovery inside left %+v", first)
	}
	if first, _ := b.Afresh("POST", "/inside/before"); first.Status != http.StatusInternalServerError {
		t.Errorf("the recovery inside left %+v", first)
	}
}
