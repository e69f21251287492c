package labgin_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/gin-gonic/gin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

func TestPanicsAreInTheAccessLog(t *testing.T) {
	t.Parallel()
	guard := stack.Guard(t)
	var log bytes.Buffer
	engine := gin.New()
	engine.Use(gin.LoggerWithWriter(&log), gin.RecoveryWithWriter(io.Discard), reprisegin.Middleware(guard, reprisegin.Unscoped))
	engine.POST("/orders", func(*gin.Context) { panic(stack.PanicValue) })
	stack.AccessLogOfPanic(t, &log, stack.Recorded(engine.Handler()))
}
