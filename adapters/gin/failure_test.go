package reprisegin

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/adapters/internal/harness"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// Where a chain only reports errors, a layer makes the response of them. Behind the
// middleware it is recorded; outside of it, the first response is right, with the fields
// of the chain, but not kept.
func TestErrorsWithoutAResponse(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	reporting := func(c *gin.Context) {
		c.Next()
		if len(c.Errors) > 0 {
			c.JSON(http.StatusUnprocessableEntity, gin.H{"error": c.Errors.Last().Error()})
		}
	}
	fails := b.counted(func(c *gin.Context) {
		c.Header("X-Failed", "1")
		_ = c.Error(errors.New("no stock"))
	})
	b.POST("/inside", b.guarded, reporting, fails)
	b.POST("/outside", reporting, b.guarded, fails)
	b.POST("/decided", b.guarded, b.counted(func(c *gin.Context) {
		_ = c.Error(errors.New("only for the log"))
		c.Status(http.StatusAccepted)
	}))
	b.POST("/decided/ok", b.guarded, b.counted(func(c *gin.Context) {
		_ = c.Error(errors.New("only for the log"))
		c.Status(http.StatusOK)
	}))
	const body = `{"error":"no stock"}`
	if first, _ := b.Twice("POST", "/inside"); first.Status != http.StatusUnprocessableEntity || first.Body != body {
		t.Errorf("inside: %+v", first)
	}
	first, again := b.Afresh("POST", "/outside")
	for _, a := range []harness.Response{first, again} {
		if a.Status != http.StatusUnprocessableEntity || a.Body != body || a.Header.Get("X-Failed") != "1" {
			t.Errorf("outside: %+v", a)
		}
	}
	if first, _ := b.Twice("POST", "/decided"); first.Status != http.StatusAccepted {
		t.Errorf("decided: %+v", first)
	}
	if first, _ := b.Twice("POST", "/decided/ok"); first.Status != http.StatusOK {
		t.Errorf("decided: %+v", first)
	}
	b.POST("/warned", b.guarded, b.counted(func(c *gin.Context) {
		_ = c.Error(errors.New("only a warning"))
		c.AbortWithStatusJSON(http.StatusOK, gin.H{"id": 7})
	}))
	if first, _ := b.Twice("POST", "/warned"); first.Status != http.StatusOK {
		t.Errorf("warned: %+v", first)
	}
	b.Ran(6)
}

// The response that a layer outside derives from c.Errors is not known here: with
// AtMostOnce the retry is notified of that, and gets no made-up response.
func TestErrorsWithoutAResponseAtMostOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Preset: reprise.AtMostOnce})
	b.POST("/orders", b.guarded, b.counted(func(c *gin.Context) { _ = c.Error(errors.New("no stock")) }))
	if first := b.Send("POST", "/orders", "Idempotency-Key", "k"); first.Status != http.StatusOK {
		t.Errorf("the first answer is %+v", first)
	}
	if again := b.Send("POST", "/orders", "Idempotency-Key", "k"); again.Status != http.StatusConflict || !strings.Contains(again.Body, "result-unavailable") {
		t.Errorf("the retry got %+v", again)
	}
	b.Ran(1)
}

// A body whose source breaks off is a complete message without the middleware, and with
// it: its error is beside the response.
func TestR33dBodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
		b := setup(t, protocol.Config{Preset: preset})
		b.POST("/reader", b.guarded, func(c *gin.Context) {
			broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
			c.DataFromReader(http.StatusOK, -1, "text/plain", broken, nil)
		})
		if bare, first := b.Send("POST", "/reader"), b.Send("POST", "/reader", "Idempotency-Key", "k"); first.Status != bare.Status || first.Body != bare.Body {
			t.Errorf("%v: answered %+v, and %+v without a key", preset, first, bare)
		}
		if again := b.Send("POST", "/reader", "Idempotency-Key", "k"); !again.Replayed() || again.Body != "half" {
			t.Errorf("%v: the retry got %+v", preset, again)
		}
	}
}

// A recovery outside finds Gin's own writer, with the header as it was before the
// handler; one inside makes a response like any other.
func TestRecoveryOnBothSides(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	recovery := gin.RecoveryWithWriter(io.Discard)
	for name, handler := range map[string]gin.HandlerFunc{
		"before": func(c *gin.Context) {
			c.Header("X-Half", "1")
			panic("before a byte")
		},
		"after": func(c *gin.Context) {
			c.Header("X-Half", "1")
			c.String(http.StatusCreated, "half")
			panic("after a byte")
		},
	} {
		b.POST("/outside/"+name, recovery, b.guarded, handler)
		b.POST("/inside/"+name, b.guarded, recovery, handler)
	}
	for _, name := range []string{"before", "after"} {
		first, _ := b.Afresh("POST", "/outside/"+name)
		if first.Status != http.StatusInternalServerError || first.Header.Get("X-Half") != "" || first.Body != "" {
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
