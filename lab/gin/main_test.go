// Package labgin_test has the layers of Gin, gin-contrib and OpenTelemetry around the
// adapter for Gin.
package labgin_test

import (
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	labtest.Main(m)
}
