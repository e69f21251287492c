package reprisefiber_test

import (
	"slices"
	"testing"

	"github.com/reprise-go/reprise/adapters/fiber/nativeapp"
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
)

//nolint:paralleltest // Run is parallel
func TestConformance(t *testing.T) {
	adaptertest.Run(t, testapp.OverMemory(nativeapp.New, testapp.FastHTTPWaivers...))
}

// Handlers may read bodies as streams, for which fasthttp has no limit of its own.
func TestConformanceWithStreams(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, testapp.OverMemory(nativeapp.NewStreaming, append(
		slices.Clip(testapp.FastHTTPWaivers),
		conformance.Waiver{Case: "R26e", Says: "want 413", Reason: "Fiber's BodyLimit bounds no stream"},
	)...))
}
