// Package labecho5_test has the layers of Echo v5 around the adapter for Echo v5.
package labecho5_test

import (
	"testing"

	appecho5 "github.com/reprise-go/reprise/adapters/echo5/nativeapp"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/wire"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestWire(t *testing.T) { wire.Run(t, "echo5", appecho5.New) } //nolint:paralleltest // it measures memory
