package repriseecho5_test

import (
	"testing"

	"github.com/reprise-go/reprise/adapters/echo5/nativeapp"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
)

//nolint:paralleltest // Run is parallel
func TestConformance(t *testing.T) {
	adaptertest.Run(t, testapp.OverMemory(nativeapp.New))
}
