package repriseecho

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestR32ReturnedErrorIsTheAnswerThatEchoMakes(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.Use(b.guarded)
	for path, c := range map[string]struct {
		handler echo.HandlerFunc
		status  int
		body    string
	}{
		"/http":    {func(echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "taken") }, 409, `{"message":"taken"}` + "\n"},
		"/wrapped": {func(echo.Context) error { return echo.ErrForbidden.WithInternal(errors.New("secret")) }, 403, `{"message":"Forbidden"}` + "\n"},
		"/bind": {func(c echo.Context) error {
			var order struct {
				Amount int `json:"amount"`
			}
			return c.Bind(&order)
		}, 415, `{"message":"Unsupported Media Type"}` + "\n"},
		"/written": {func(c echo.Context) error {
			_ = c.String(http.StatusNotFound, "no such order")
			return errors.New("only for the log")
		}, 404, "no such order"},
	} {
		b.POST(path, b.counted(c.handler))
		if first, _ := b.twice("POST", path); first.status != c.status || first.body != c.body {
			t.Errorf("%s: %+v", path, first)
		}
	}
	b.ran(4)
}

func TestR32ErrorHandlerOfTheService(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.HTTPErrorHandler = func(err error, c echo.Context) {
		if c.Response().Committed {
			t.Error("the response is committed before its error is handled")
		}
		c.Response().Header().Set("X-Handled", "1")
		_ = c.JSON(http.StatusUnprocessableEntity, echo.Map{"problem": err.Error()})
	}
	b.POST("/orders", b.counted(func(echo.Context) error { return fmt.Errorf("order: %w", errors.New("no stock")) }), b.guarded)
	first, again := b.twice("POST", "/orders")
	if first.status != http.StatusUnprocessableEntity || first.body != `{"problem":"order: no stock"}`+"\n" || again.header.Get("X-Handled") != "1" {
		t.Errorf("%+v, %+v", first, again)
	}
	b.ran(1)
}

// R31: an error that is a 5xx is released or kept as the preset says.
func TestR31ErrorsByPreset(t *testing.T) {
	t.Parallel()
	for preset, runs := range map[reprise.Preset]int64{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
		b := setup(t, protocol.Config{Preset: preset})
		b.POST("/orders", b.counted(func(echo.Context) error { return errors.New("database") }), b.guarded)
		for range 2 {
			if a := b.send("POST", "/orders", "Idempotency-Key", "k"); a.status != 500 || a.body != `{"message":"Internal Server Error"}`+"\n" {
				t.Errorf("%v: %+v", preset, a)
			}
		}
		b.ran(runs)
	}
}

// recovery does what Echo's own does.
func recovery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer func() {
			if p := recover(); p != nil {
				c.Error(fmt.Errorf("%v", p))
			}
		}()
		return next(c)
	}
}

func TestPanicsByPreset(t *testing.T) {
	t.Parallel()
	handlers := map[string]echo.HandlerFunc{
		"before": func(c echo.Context) error {
			c.Response().Header().Set("X-Half", "1")
			panic("before a byte")
		},
		"after": func(c echo.Context) error {
			_ = c.String(http.StatusCreated, "half")
			panic("after a byte")
		},
	}
	for _, c := range []struct {
		preset reprise.Preset
		name   string
		again  int // status of the retry
		runs   int64
	}{
		{reprise.Recoverable, "before", 500, 2},
		{reprise.Recoverable, "after", 500, 2},
		{reprise.AtMostOnce, "before", 500, 1},
		{reprise.AtMostOnce, "after", 409, 1},
	} {
		b := setup(t, protocol.Config{Preset: c.preset})
		b.POST("/outside", b.counted(handlers[c.name]), recovery, b.guarded)
		b.POST("/bare", handlers[c.name], b.guarded)
		b.POST("/inside", handlers[c.name], b.guarded, recovery)

		first := b.send("POST", "/outside", "Idempotency-Key", "k")
		if first.status != 500 || first.header.Get("X-Half") != "" || !strings.Contains(first.body, "Internal Server Error") {
			t.Errorf("%+v: the recovery outside answered %+v", c, first)
		}
		again := b.send("POST", "/outside", "Idempotency-Key", "k")
		if again.status != c.again || again.replayed() != (c.again == 500 && c.runs == 1) {
			t.Errorf("%+v: the retry got %+v", c, again)
		}
		b.ran(c.runs)
		if got := b.talk("POST /bare HTTP/1.1\r\nHost: h\r\nIdempotency-Key: bare\r\nContent-Length: 0\r\n\r\n"); got != "" {
			t.Errorf("%+v: without a recovery the client got %q, want a connection that is cut", c, got)
		}
		// A recovery inside makes a response of it, like any other.
		if inside, want := b.send("POST", "/inside", "Idempotency-Key", "i"), map[string]int{"before": 500, "after": 201}[c.name]; inside.status != want {
			t.Errorf("%+v: the recovery inside left %+v", c, inside)
		}
	}
}
