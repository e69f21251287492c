package labgin_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

// Gin has no way to use a layer of net/http. Who writes one often leaves Gin's own writer
// to the handlers, so that the response goes past the adapter: it sees none, and would
// keep an empty 200.
func TestNetHTTPAdapterBypassedByGin(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]gin.HandlerFunc{
		"ok":      func(c *gin.Context) { c.String(http.StatusOK, "done") },
		"body":    func(c *gin.Context) { c.JSON(http.StatusCreated, gin.H{"id": 7}) },
		"status":  func(c *gin.Context) { c.Status(http.StatusNoContent) },
		"aborted": func(c *gin.Context) { c.AbortWithStatus(http.StatusConflict) },
	} {
		for wrapped, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
			"as it is": func(w http.ResponseWriter) http.ResponseWriter { return w },
			"wrapped":  func(w http.ResponseWriter) http.ResponseWriter { return &wrapper{w} },
		} {
			t.Run(name+"/"+wrapped, func(t *testing.T) {
				t.Parallel()
				stack.RunMisuse(t, "reprisegin", func(guard *protocol.Guard) http.Handler {
					ours := reprisehttp.Middleware(guard, reprisehttp.Unscoped)
					e := gin.New()
					e.Use(func(c *gin.Context) {
						ours(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
							c.Request = r
							c.Next()
						})).ServeHTTP(wrap(c.Writer), c.Request)
					})
					e.POST("/", handler)
					return e
				})
			})
		}
	}
}

// wrapper is a writer as layers of net/http wrap it.
type wrapper struct{ http.ResponseWriter }

func (w *wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// An http.Handler may be protected as such, below Gin and around it.
func TestNetHTTPAdapterBelowAndAroundGin(t *testing.T) {
	t.Parallel()
	for status, handler := range stack.Plain {
		t.Run("WrapH/"+http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			stack.RunUse(t, status, func(guard *protocol.Guard) http.Handler {
				e := gin.New()
				e.POST("/", gin.WrapH(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(handler)))
				return e
			})
		})
	}
	for status, handler := range map[int]gin.HandlerFunc{
		http.StatusOK:       func(*gin.Context) {},
		http.StatusConflict: func(c *gin.Context) { c.AbortWithStatus(http.StatusConflict) },
	} {
		t.Run("around/"+http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			stack.RunUse(t, status, func(guard *protocol.Guard) http.Handler {
				e := gin.New()
				e.POST("/", handler)
				return reprisehttp.Middleware(guard, reprisehttp.Unscoped)(e)
			})
		})
	}
}

// A handler without a response changes the state of Gin's writer: it takes the
// connection, or sends an informational response.
func TestNetHTTPAdapterBelowGinWithoutResponse(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"hijacked": func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			_ = rw.Flush()
		},
		"informational": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stack.RunSilent(t, func(guard *protocol.Guard) http.Handler {
				e := gin.New()
				e.POST("/", gin.WrapH(reprisehttp.Middleware(guard, reprisehttp.Unscoped)(handler)))
				return e
			})
		})
	}
}

func TestReverseProxyInside(t *testing.T) {
	t.Parallel()
	stack.RunProxy(t, func(guard *protocol.Guard, proxy http.Handler) http.Handler {
		e := gin.New()
		e.POST("/", reprisegin.Middleware(guard, reprisegin.Unscoped), gin.WrapH(proxy))
		return e
	})
}
