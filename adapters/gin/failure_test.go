package reprisegin

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

func TestR32AbortWithErrorIsTheAnswerThatGinMakes(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.Use(b.guarded)
	b.POST("/abort", b.counted(func(c *gin.Context) { _ = c.AbortWithError(http.StatusConflict, errors.New("taken")) }), b.counted(created))
	b.POST("/json", b.counted(func(c *gin.Context) { c.AbortWithStatusJSON(http.StatusBadRequest, gin.H{"error": "amount"}) }), b.counted(created))
	if first, _ := b.twice("POST", "/abort"); first.status != http.StatusConflict || first.body != "" {
		t.Errorf("%+v", first)
	}
	if first, _ := b.twice("POST", "/json"); first.body != `{"error":"amount"}` {
		t.Errorf("%+v", first)
	}
	b.ran(2)
}

// Where a chain only reports errors, a layer makes the response of them. Behind the middleware it is recorded; outside of it, the
// first answer is right and nothing is kept.
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
	b.ran(4)
}

func TestPanicsByPreset(t *testing.T) {
	t.Parallel()
	recovery := gin.RecoveryWithWriter(io.Discard)
	before := func(c *gin.Context) {
		c.Header("X-Half", "1")
		panic("before a byte")
	}
	after := func(c *gin.Context) {
		c.String(http.StatusCreated, "half")
		panic("after a byte")
	}
	type kind struct {
		handler       gin.HandlerFunc
		again         int  // status of the retry; 0: the connection is cut again
		afresh, whole bool // the retry ran; the first answer is whole
	}
	for preset, kinds := range map[reprise.Preset]map[string]kind{
		reprise.Recoverable: {"before": {before, 500, true, true}, "after": {after, 500, true, true}},
		reprise.AtMostOnce:  {"before": {before, 500, false, true}, "after": {after, 409, false, true}},
	} {
		b := setup(t, protocol.Config{Preset: preset})
		for name, k := range kinds {
			b.POST("/"+name, recovery, b.guarded, b.counted(k.handler))
			b.POST("/bare/"+name, b.guarded, b.counted(k.handler))
			b.POST("/inside/"+name, b.guarded, recovery, b.counted(k.handler))
		}
		for name, k := range kinds {
			runs := b.runs.Load()
			first := b.send("POST", "/"+name, "Idempotency-Key", name)
			if first.status != http.StatusInternalServerError || first.header.Get("X-Half") != "" || first.body != "" {
				t.Errorf("%v, %s: the recovery outside answered %+v", preset, name, first)
			}
			if again := b.send("POST", "/"+name, "Idempotency-Key", name); again.status != k.again || again.replayed() == k.afresh && k.again != 409 {
				t.Errorf("%v, %s: the retry got %+v", preset, name, again)
			}
			if got := b.runs.Load() - runs; (got == 2) != k.afresh {
				t.Errorf("%v, %s: it ran %d times", preset, name, got)
			}
			if got := b.talk("POST /bare/" + name + " HTTP/1.1\r\nHost: h\r\nIdempotency-Key: bare-" + name + "\r\nContent-Length: 0\r\n\r\n"); got != "" {
				t.Errorf("%v, %s: without a recovery the client got %q, want a connection that is cut", preset, name, got)
			}
		}
		// A recovery inside makes a response of it, like any other.
		inside := b.send("POST", "/inside/after", "Idempotency-Key", "inside")
		if inside.status != http.StatusCreated || inside.body != "half" {
			t.Errorf("%v: the recovery inside left %+v", preset, inside)
		}
	}
}
