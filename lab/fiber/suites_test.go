package labfiber_test

import (
	"testing"

	labfasthttp "github.com/reprise-go/reprise/lab/fasthttp"
	labfiber "github.com/reprise-go/reprise/lab/fiber"
	"github.com/reprise-go/reprise/lab/matrix"
	"github.com/reprise-go/reprise/lab/wire"
)

//nolint:paralleltest // Run is parallel
func TestMatrix(t *testing.T) { matrix.Run(t, "fiber", labfiber.New, labfasthttp.Waivers()...) }

func TestWire(t *testing.T) { wire.Run(t, "fiber", labfiber.New) } //nolint:paralleltest // it measures memory
