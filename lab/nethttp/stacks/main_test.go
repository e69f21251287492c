// Package stacks_test has the layers of net/http, chi, gorilla and OpenTelemetry around
// the adapter for net/http. It is a separate module, so that lab/nethttp, whose server
// other tests of the lab run, needs none of them.
package stacks_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
