package frameworks

import (
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/core/protocol"
)

// TestCostOfGinAndEchoOverMemory is their gate of P5: a request to a handler that does nothing but answer costs at most three allocations
// more than with net/http, framework included, and one that is not keyed costs no more than without the middleware. It is not
// parallel, because it counts the allocations of the process.
func TestCostOfGinAndEchoOverMemory(t *testing.T) {
	if labtest.RaceEnabled {
		t.Skip("allocations are those of a program without the race detector")
	}
	guard := costGuard(t)
	netHTTP := costServer(t, costMiddleware(t)(costHandler()))
	for name, handlers := range map[string][2]http.Handler{
		"gin":  {costGin(nil), costGin(guard)},
		"echo": {costEcho(nil), costEcho(guard)},
	} {
		bare, protected := costServer(t, handlers[0]), costServer(t, handlers[1])
		for _, limit := range []struct {
			kind adaptertest.Traffic
			than string
			more float64
		}{
			{adaptertest.NotKeyed, bare, 0},
			{adaptertest.Unkeyed, bare, 0},
			{adaptertest.NewKeys, netHTTP, 3},
			{adaptertest.Replays, netHTTP, 3},
		} {
			base := adaptertest.AllocsPerRequest(t, limit.than, "/orders", limit.kind)
			got := adaptertest.AllocsPerRequest(t, protected, "/orders", limit.kind)
			t.Logf("%s, %s: %.2f allocations a request, against %.2f", name, limit.kind, got, base)
			if got > base+limit.more+0.5 { // maps grow now and then
				t.Errorf("%s, %s: %.2f allocations a request, against %.2f; want at most %v more", name, limit.kind, got, base, limit.more)
			}
		}
	}
}

// costGin is [costHandler] in Gin, behind the middleware if there is a guard.
func costGin(guard *protocol.Guard) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	if guard != nil {
		engine.Use(reprisegin.Middleware(guard, reprisegin.Unscoped))
	}
	body := []byte(adaptertest.DefaultBody)
	engine.Any("/orders", func(c *gin.Context) { c.Data(adaptertest.DefaultStatus, adaptertest.DefaultContentType, body) })
	return engine
}

// costEcho is [costHandler] in Echo, behind the middleware if there is a guard, else behind one that does nothing: Echo wraps the
// handler anew for each request, which costs an allocation whatever the middleware is.
func costEcho(guard *protocol.Guard) http.Handler {
	e := echo.New()
	if guard != nil {
		e.Use(repriseecho.Middleware(guard, repriseecho.Unscoped))
	} else {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error { return next(c) }
		})
	}
	body := []byte(adaptertest.DefaultBody)
	e.Any("/orders", func(c echo.Context) error {
		return c.Blob(adaptertest.DefaultStatus, adaptertest.DefaultContentType, body)
	})
	return e
}
