package labecho_test

import (
	"testing"

	appecho "github.com/reprise-go/reprise/adapters/echo/nativeapp"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestWire(t *testing.T) { wire.Run(t, "echo", appecho.New) } //nolint:paralleltest // it measures memory
