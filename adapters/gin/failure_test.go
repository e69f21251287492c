package reprisegin

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gin-gonic/gin"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// Where a chain only reports errors, a layer makes the response of them. Behind the
// middleware it is recorded; outside of it, the first answer is right and nothing is
// kept.
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
	if first, _ := b.twice("POST", "/inside"); first.status != http.StatusUnprocessableEntity || first.body != body {
		t.Errorf("inside: %+v", first)
	}
	first, again := b.afresh("POST", "/outside")
	for _, a := range []answer{first, again} {
		if a.status != http.StatusUnprocessableEntity || a.body != body || a.header.Get("X-Failed") != "" {
			t.Errorf("outside: %+v", a)
		}
	}
	if first, _ := b.twice("POST", "/decided"); first.status != http.StatusAccepted {
		t.Errorf("decided: %+v", first)
	}
	if first, _ := b.twice("POST", "/decided/ok"); first.status != http.StatusOK {
		t.Errorf("decided: %+v", first)
	}
	b.POST("/warned", b.guarded, b.counted(func(c *gin.Context) {
		_ = c.Error(errors.New("only a warning"))
		c.AbortWithStatusJSON(http.StatusOK, gin.H{"id": 7})
	}))
	if first, _ := b.twice("POST", "/warned"); first.status != http.StatusOK {
		t.Errorf("warned: %+v", first)
	}
	b.ran(6)
}

// What a layer outside makes of c.Errors is not known here: with AtMostOnce the retry is
// told so, and gets no made-up answer.
func TestErrorsWithoutAResponseAtMostOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Preset: reprise.AtMostOnce})
	b.POST("/orders", b.guarded, b.counted(func(c *gin.Context) { _ = c.Error(errors.New("no stock")) }))
	if first := b.send("POST", "/orders", "Idempotency-Key", "k"); first.status != http.StatusOK {
		t.Errorf("the first answer is %+v", first)
	}
	if again := b.send("POST", "/orders", "Idempotency-Key", "k"); again.status != http.StatusConflict || !strings.Contains(again.body, "result-unavailable") {
		t.Errorf("the retry got %+v", again)
	}
	b.ran(1)
}

// A body whose source breaks off is answered as without the middleware, and no replay
// passes for it.
func TestR33BodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	for preset, want := range map[reprise.Preset]string{reprise.Recoverable: "half", reprise.AtMostOnce: "result-unavailable"} {
		b := setup(t, protocol.Config{Preset: preset})
		b.POST("/reader", b.guarded, func(c *gin.Context) {
			broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
			c.DataFromReader(http.StatusOK, -1, "text/plain", broken, nil)
		})
		if bare, first := b.send("POST", "/reader"), b.send("POST", "/reader", "Idempotency-Key", "k"); first.status != bare.status || first.body != bare.body {
			t.Errorf("%v: answered %+v, and %+v without a key", preset, first, bare)
		}
		if again := b.send("POST", "/reader", "Idempotency-Key", "k"); again.replayed() || !strings.Contains(again.body, want) {
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
		first, _ := b.afresh("POST", "/outside/"+name)
		if first.status != http.StatusInternalServerError || first.header.Get("X-Half") != "" || first.body != "" {
			t.Errorf("%s: the recovery outside answered %+v", name, first)
		}
	}
	if first, _ := b.twice("POST", "/inside/after"); first.status != http.StatusCreated || first.body != "half" {
		t.Errorf("the recovery inside left %+v", first)
	}
	if first, _ := b.afresh("POST", "/inside/before"); first.status != http.StatusInternalServerError {
		t.Errorf("the recovery inside left %+v", first)
	}
}
