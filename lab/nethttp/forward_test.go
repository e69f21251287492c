package labhttp_test

import (
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/matrix"
	labhttp "github.com/reprise-go/reprise/lab/nethttp"
	"github.com/reprise-go/reprise/lab/wire"
)

// throughProxy are the cases that cannot hold for a service that is another process. They
// run, and have to fail. Cases with an option that no file has are not applicable.
var throughProxy = slices.Concat(matrix.NetHTTPWaivers, waive(
	"a panic, a cut response and a taken connection are a lost answer to the proxy: 502, and the outcome is unknown, with either preset",
	"R31d", "R31e", "R33a", "R33b", "R33g", "R34d", "R34f", "R34g", "T7",
), waive(
	"a decision of a handler in Go does not leave its process",
	"R36a", "R36b", "R36c", "R52a", "R52b", "R52c",
), waive(
	"the case makes a record itself, and the proxy hashes the scope, so its records have other IDs",
	"R24c", "R38a", "R38b", "R38c", "R38d", "R41g", "R42b",
), waive(
	"a file has no functions: its scopes are hashed values, which never are away and have no control byte, and its fingerprints those of core/protocol",
	"R24f", "R33d", "R43d", "R44",
), waive(
	"fields of one hop end at the proxy, a malformed one is a lost answer, and the service cannot remove those of a layer in front",
	"R13g", "R13h", "R14a",
))

func waive(reason string, cases ...string) (all []conformance.Waiver) {
	for _, id := range cases {
		all = append(all, conformance.Waiver{Case: id, Reason: reason})
	}
	return all
}

// brief are the prefixes of the cases that every run has.
var brief = []string{"R12", "R20", "R27", "R28", "R34"}

// TestProxyConformance runs the cases for adapters on the proxy.
func TestProxyConformance(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, func(tb testing.TB) adaptertest.Fixture {
		if id := path.Base(tb.Name()); !slices.ContainsFunc(brief, func(prefix string) bool { return strings.HasPrefix(id, prefix) }) {
			labtest.Breadth(tb, "cases of adapters on the proxy")
		}
		st := sync.OnceValue(memstore.New)
		return adaptertest.Fixture{
			Open:  func(testing.TB) store.Store { return st() },
			Serve: labhttp.ServeForwarded, Advance: conformance.Sleep, Waivers: throughProxy,
		}
	})
}

func TestProxyWire(t *testing.T) { wire.RunOn(t, "proxy", labhttp.ServeForwarded) } //nolint:paralleltest // it measures memory
