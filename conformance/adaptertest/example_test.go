package adaptertest_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// middleware is the adapter under test, in its own package: reprisehttp.Middleware, say.
var middleware testapp.NetHTTPMiddleware

// A test of an adapter is a call of Run for each store. The package testapp has the
// handlers that an adapter serves; testapp.NetHTTP serves them with net/http, and an
// adapter for another framework implements a testapp.Call.
func ExampleRun() {
	testAdapter := func(t *testing.T) {
		adaptertest.Run(t, func(testing.TB) adaptertest.Fixture {
			st := sync.OnceValue(memstore.New)
			return adaptertest.Fixture{
				Open:  func(testing.TB) store.Store { return st() },
				Serve: testapp.InTest(testapp.NetHTTP(middleware)),
			}
		})
	}
	_ = testAdapter // call it TestAdapter, in a package of tests
}

// Cases are the rules that an adapter is held to; each is a subtest.
func ExampleCases() {
	first := adaptertest.Cases()[0]
	fmt.Println(first.ID)
	fmt.Println(first.Rule)
	fmt.Println(first.Source)
	// Output:
	// R1a
	// The name of the key's field is case-insensitive.
	// RFC 9110 5.1
}
