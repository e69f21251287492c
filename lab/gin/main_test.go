// Package labgin_test has the layers of Gin, gin-contrib and OpenTelemetry around the
// adapter for Gin.
package labgin_test

import (
	"testing"

	"github.com/gin-gonic/gin"

	appgin "github.com/reprise-go/reprise/adapters/gin/nativeapp"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	labtest.Main(m)
}

func TestWire(t *testing.T) { wire.Run(t, "gin", appgin.New) } //nolint:paralleltest // it measures memory
