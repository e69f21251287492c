package labgin_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gin-contrib/gzip"
	"github.com/gin-gonic/gin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

type once = stack.Case[gin.HandlerFunc, gin.HandlerFunc]

// bodyLog is a layer that keeps a copy of each body, as many services have it.
func bodyLog(c *gin.Context) {
	w := &copyingWriter{ResponseWriter: c.Writer}
	c.Writer = w
	c.Next()
}

type copyingWriter struct {
	gin.ResponseWriter

	body bytes.Buffer
}

func (w *copyingWriter) Write(p []byte) (int, error) {
	w.body.Write(p)
	return w.ResponseWriter.Write(p)
}

type userKey struct{}

// contexts are the ways in which handlers give their request another context, and answer.
var contexts = map[string]func(*gin.Context){
	"a value": func(c *gin.Context) {
		c.Request = c.Request.WithContext(context.WithValue(c, userKey{}, "ann"))
		answer(c)
	},
	"a deadline": func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c, 5*time.Second)
		defer cancel() // by then, since Gin gives c to another request
		c.Request = c.Request.WithContext(ctx)
		answer(c)
	},
	"the background": func(c *gin.Context) {
		c.Request = c.Request.WithContext(context.WithValue(context.Background(), userKey{}, "ann"))
		answer(c)
	},
	"another request": func(c *gin.Context) {
		c.Request, _ = http.NewRequestWithContext(context.Background(), http.MethodPost, "/elsewhere", http.NoBody)
		answer(c)
	},
	"no keys": func(c *gin.Context) {
		c.Keys = nil
		answer(c)
	},
	"foreign keys": func(c *gin.Context) {
		c.Set("github.com/reprise-go/reprise", "ours")
		answer(c)
	},
}

func answer(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{"n": 1}) }

// onceCases has the stacks that ran twice or were answered wrongly at some time.
func onceCases() map[string]once {
	cases := map[string]once{
		"an error after the response": {Handler: func(c *gin.Context) {
			c.JSON(http.StatusCreated, gin.H{"n": 1})
			_ = c.AbortWithError(http.StatusInternalServerError, errors.New("the mail was not sent"))
		}},
		"an error beside an aborted chain": {Handler: func(c *gin.Context) {
			c.AbortWithStatusJSON(http.StatusOK, gin.H{"n": 1})
			_ = c.Error(errors.New("only a warning"))
		}},
		"early hints": {Handler: func(c *gin.Context) {
			c.Header("Link", "</style.css>; rel=preload")
			c.Writer.WriteHeader(http.StatusEarlyHints)
			c.Writer.WriteHeaderNow()
			c.JSON(http.StatusCreated, gin.H{"n": 1})
		}},
		"204 with a trailer": {Handler: func(c *gin.Context) {
			c.Header("Trailer", "X-Sum")
			c.Status(http.StatusNoContent)
			_, _ = c.Writer.Write(nil)
			c.Header("X-Sum", "1")
		}},
		"304 with a trailer": {Handler: func(c *gin.Context) {
			c.Header("Trailer", "X-Sum")
			c.JSON(http.StatusNotModified, gin.H{"n": 1})
			c.Header("X-Sum", "1")
		}},
	}
	for name, layer := range map[string]gin.HandlerFunc{"gzip": gzip.Gzip(gzip.DefaultCompression), "a body log": bodyLog} {
		for way, handler := range contexts {
			cases[name+" and "+way] = once{Layers: []gin.HandlerFunc{layer}, Handler: handler}
		}
	}
	return cases
}

func TestOrdinaryStacksRunOnce(t *testing.T) {
	t.Parallel()
	stack.RunOnce(t, onceCases(), func(t *testing.T, guard *protocol.Guard, c once, ran func(context.Context)) string {
		t.Helper()
		engine := gin.New()
		if guard != nil {
			engine.Use(reprisegin.Middleware(guard, reprisegin.Unscoped))
		}
		engine.Use(c.Layers...)
		engine.POST("/", func(g *gin.Context) {
			ran(g.Request.Context())
			c.Handler(g)
		})
		return stack.Serve(t, engine.Handler())
	})
}
