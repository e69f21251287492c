package labfiber3_test

import (
	"testing"

	labfasthttp "github.com/reprise-go/reprise/lab/fasthttp"
	labfiber3 "github.com/reprise-go/reprise/lab/fiber3"
	"github.com/reprise-go/reprise/lab/matrix"
	"github.com/reprise-go/reprise/lab/wire"
)

//nolint:paralleltest // Run is parallel
func TestMatrix(t *testing.T) { matrix.Run(t, "fiber3", labfiber3.New, labfasthttp.Waivers()...) }

func TestWire(t *testing.T) { wire.Run(t, "fiber3", labfiber3.New) } //nolint:paralleltest // it measures memory
