package labgin_test

import (
	"testing"

	labgin "github.com/reprise-go/reprise/lab/gin"
	"github.com/reprise-go/reprise/lab/matrix"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestMatrix(t *testing.T) { matrix.Run(t, "gin", labgin.New, matrix.NetHTTPWaivers...) } //nolint:paralleltest // Run is parallel

func TestWire(t *testing.T) { wire.Run(t, "gin", labgin.New) } //nolint:paralleltest // it measures memory
