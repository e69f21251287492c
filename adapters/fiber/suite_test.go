package reprisefiber_test

import (
	"slices"
	"testing"

	"github.com/reprise-go/reprise/adapters/fiber/nativeapp"
	shared "github.com/reprise-go/reprise/adapters/internal/fasthttp/nativeapp"
	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
)

//nolint:paralleltest // Run is parallel
func TestConformance(t *testing.T) {
	adaptertest.Run(t, testapp.OverMemory(nativeapp.New, shared.Waivers()...))
}

// Handlers may read bodies as streams, for which fasthttp has no limit of its own. No
// release of it reads the trailer section of a stream to its end.
func TestConformanceWithStreams(t *testing.T) {
	t.Parallel()
	waivers := slices.DeleteFunc(slices.Clone(testapp.FastHTTPWaivers), func(w conformance.Waiver) bool { return w.Case == "R26c" })
	adaptertest.Run(t, testapp.OverMemory(nativeapp.NewStreaming, append(
		waivers,
		conformance.Waiver{Case: "R26c", Silent: true, Says: "read an answer", Reason: "a short body of a refused request is read, so that its connection can be used again"},
		conformance.Waiver{Case: "R26e", Says: "want 413", Reason: "Fiber's BodyLimit bounds no stream"},
		conformance.Waiver{Case: "R27b", Says: `after the chunks ""`, Reason: "fasthttp takes a stream as whole that breaks off between two chunks"},
	)...))
}
