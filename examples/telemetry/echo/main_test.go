package main

import (
	"testing"

	"github.com/reprise-go/reprise/examples/telemetry/internal/shoptest"
)

func TestTelemetry(t *testing.T) {
	t.Parallel()
	shoptest.Run(t)
}
