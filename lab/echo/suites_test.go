package labecho_test

import (
	"testing"

	labecho "github.com/reprise-go/reprise/lab/echo"
	"github.com/reprise-go/reprise/lab/matrix"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestMatrix(t *testing.T) { matrix.Run(t, "echo", labecho.New, matrix.NetHTTPWaivers...) } //nolint:paralleltest // Run is parallel

func TestWire(t *testing.T) { wire.Run(t, "echo", labecho.New) } //nolint:paralleltest // it measures memory
