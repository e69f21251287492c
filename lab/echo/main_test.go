// Package labecho_test has the layers of Echo and OpenTelemetry around the adapter for
// Echo.
package labecho_test

import (
	"testing"

	appecho "github.com/reprise-go/reprise/adapters/echo/nativeapp"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestWire(t *testing.T) { wire.Run(t, "echo", appecho.New) } //nolint:paralleltest // it measures memory
