package labgin_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
)

func TestCostOfFrameworkOverMemory(t *testing.T) { cost.Framework(t, costGin) } //nolint:paralleltest // it counts allocations

// costGin is [cost.Handler] in Gin, behind the middleware if there is a guard.
func costGin(guard *protocol.Guard) http.Handler {
	engine := gin.New()
	if guard != nil {
		engine.Use(reprisegin.Middleware(guard, reprisegin.Unscoped))
	}
	body := []byte(adaptertest.DefaultBody)
	engine.Any("/orders", func(c *gin.Context) { c.Data(adaptertest.DefaultStatus, adaptertest.DefaultContentType, body) })
	return engine
}
