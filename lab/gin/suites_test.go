package labgin_test

import (
	"testing"

	appgin "github.com/reprise-go/reprise/adapters/gin/nativeapp"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestWire(t *testing.T) { wire.Run(t, "gin", appgin.New) } //nolint:paralleltest // it measures memory
