package serve

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/protocol"
)

// adapters has every adapter of this binary by its name. A framework adds itself in the
// file that is named after it, unless its build tag leaves it out.
var adapters = map[string]func(*testapp.App) testapp.Server{
	"nethttp": testapp.NetHTTP(func(guard *protocol.Guard, scope func(*http.Request) (string, error)) func(http.Handler) http.Handler {
		return reprisehttp.Middleware(guard, scope)
	}),
}

// leftOut has the build tag of every adapter that this binary was built without.
var leftOut = map[string]string{}

// Adapters returns the names of the adapters of this binary, sorted.
func Adapters() []string { return slices.Sorted(maps.Keys(adapters)) }

// LeftOut returns the names of the adapters that this binary was built without, sorted.
func LeftOut() []string { return slices.Sorted(maps.Keys(leftOut)) }

// Adapter returns what serves an adapter inside a test: the Serve of an
// [adaptertest.Fixture]. The server has an engine of its own over the store, listens on a
// free loopback port, and ends with the test that it is given. The name is one of
// [Adapters].
func Adapter(name string) func(testing.TB, adaptertest.Options) (addr string) {
	return func(tb testing.TB, o adaptertest.Options) string {
		tb.Helper()
		build, err := adapter(name)
		if err != nil {
			tb.Fatal(err)
		}
		return testapp.InTest(build)(tb, o)
	}
}

// adapter finds an adapter by its name.
func adapter(name string) (func(*testapp.App) testapp.Server, error) {
	if build, known := adapters[name]; known {
		return build, nil
	}
	if tag, known := leftOut[name]; known {
		return nil, fmt.Errorf("adapter %q was left out of this binary by the build tag %s", name, tag)
	}
	return nil, fmt.Errorf("want one of %s", strings.Join(Adapters(), ", "))
}
