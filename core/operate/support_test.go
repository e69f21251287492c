package operate_test

import (
	"bytes"
	"testing"

	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/protocol"
)

var inTime, inTimeNamed = teststore.InTime, teststore.InTimeNamed

func scope() (string, error) { return "tenant", nil }

func secret(tb testing.TB, id string) protocol.Secret {
	tb.Helper()
	return must(protocol.NewSecret(id, bytes.Repeat([]byte(id), 32)))
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
