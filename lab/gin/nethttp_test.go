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

func TestReverseProxyInside(t *testing.T) {
	t.Parallel()
	stack.RunProxy(t, func(guard *protocol.Guard, proxy http.Handler) http.Handler {
		e := gin.New()
		e.POST("/", reprisegin.Middleware(guard, reprisegin.Unscoped), gin.WrapH(proxy))
		return e
	})
}
