// Package edges_test proves both edges of a service with real clients: the interceptors
// for gRPC and Connect over each protocol that a client may choose, and the project's own
// clients over a guard, through connections that break.
// docs/engineering/protocol.md says which rules do not apply to unary calls, and why.
package edges_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
