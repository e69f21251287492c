package labgin_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/combinations"
)

//nolint:paralleltest // Run needs the processor for itself
func TestCombinations(t *testing.T) {
	combinations.Run(t, 1000, func(guard *protocol.Guard, scope combinations.Scope, next http.Handler) http.Handler {
		engine := gin.New()
		engine.Any("/*path", reprisegin.Middleware(guard, func(c *gin.Context) (string, error) { return scope(c.Request) }), gin.WrapH(next))
		return engine
	})
}
