// Package nativeapp serves the application of the adapter suite natively with net/http.
package nativeapp

import (
	"net/http"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/protocol"
)

// New makes the server of the adapter for net/http.
func New(a *testapp.App) testapp.Server {
	return testapp.NetHTTP(func(guard *protocol.Guard, scope func(*http.Request) (string, error)) func(http.Handler) http.Handler {
		return reprisehttp.Middleware(guard, scope)
	})(a)
}

// NewBare makes a server without the adapter, which benchmarks compare with.
func NewBare(a *testapp.App) testapp.Server {
	return testapp.NetHTTP(func(*protocol.Guard, func(*http.Request) (string, error)) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler { return h }
	})(a)
}
