package labfiber3_test

import (
	"testing"

	appfiber3 "github.com/reprise-go/reprise/adapters/fiber3/nativeapp"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestWire(t *testing.T) { wire.Run(t, "fiber3", appfiber3.New) } //nolint:paralleltest // it measures memory
