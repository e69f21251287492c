// Package rpc_test proves the interceptors for gRPC and Connect with real clients: the
// rules of the protocol, as far as they apply to unary calls, over each protocol that a
// client may choose. docs/engineering/protocol.md says which rules do not apply, and why.
package rpc_test

import (
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
