package labecho5_test

import (
	"testing"

	appecho5 "github.com/reprise-go/reprise/adapters/echo5/nativeapp"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestWire(t *testing.T) { wire.Run(t, "echo5", appecho5.New) } //nolint:paralleltest // it measures memory
