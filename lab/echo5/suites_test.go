package labecho5_test

import (
	"testing"

	labecho5 "github.com/reprise-go/reprise/lab/echo5"
	"github.com/reprise-go/reprise/lab/matrix"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestMatrix(t *testing.T) { matrix.Run(t, "echo5", labecho5.New, matrix.NetHTTPWaivers...) } //nolint:paralleltest // Run is parallel

func TestWire(t *testing.T) { wire.Run(t, "echo5", labecho5.New) } //nolint:paralleltest // it measures memory
