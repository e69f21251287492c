package labfiber_test

import (
	"testing"

	appfiber "github.com/reprise-go/reprise/adapters/fiber/nativeapp"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestWire(t *testing.T) { wire.Run(t, "fiber", appfiber.New) } //nolint:paralleltest // it measures memory
