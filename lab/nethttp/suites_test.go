package labhttp_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/matrix"
	labhttp "github.com/reprise-go/reprise/lab/nethttp"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestMatrix(t *testing.T) { matrix.Run(t, "nethttp", labhttp.New, matrix.NetHTTPWaivers...) } //nolint:paralleltest // Run is parallel

func TestWire(t *testing.T) { wire.Run(t, "nethttp", labhttp.New) } //nolint:paralleltest // it measures memory
