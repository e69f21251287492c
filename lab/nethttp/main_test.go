package labhttp_test

import (
	"testing"

	apphttp "github.com/reprise-go/reprise/adapters/nethttp/nativeapp"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestWire(t *testing.T) { wire.Run(t, "nethttp", apphttp.New) } //nolint:paralleltest // it measures memory
