// Package labecho_test has the layers of Echo and OpenTelemetry around the adapter for
// Echo.
package labecho_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
