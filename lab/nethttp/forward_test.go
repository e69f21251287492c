package labhttp_test

import (
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/wire"
)

// throughProxy are the cases that cannot hold for a service that is another process. They
// run, and have to fail. Cases with an option that no file has are not applicable.
var throughProxy = slices.Concat(slices.DeleteFunc(slices.Clone(testapp.NetHTTPWaivers), func(w conformance.Waiver) bool { return w.Case == "R27h" }), waive(
	"a panic, a cut response and a taken connection are a lost answer to the proxy: 502, and the outcome is unknown, with either preset",
	map[string]string{
		"R31e": "is answered 502", "R33a": "is answered 502", "R33b": "is answered 502", "T7": "is answered 502",
		"R33g": "the handler did not run: 409", "R34d": "the handler did not run: 409", "R34f": "answered 200",
	},
), waive(
	"the upstream's response to a run that was cancelled does not reach the proxy: 502, and the outcome is unknown; 503 when it was over before it was sent",
	map[string]string{"R31j": "the handler did not run: 50"},
), waive(
	"a decision of a handler in Go does not leave its process",
	map[string]string{"R52a": "want the problem outcome-unknown", "R52c": "answered 504"},
), waive(
	"the case makes a record itself, and the proxy hashes the scope, so its records have other IDs",
	map[string]string{"R24c": "want the problem in-progress", "R24i": "want the problem in-progress"},
), waive(
	"a file has no functions: its scopes are hashed values, which never are away and have no control byte",
	map[string]string{"R43d": "want the problem scope-missing", "R44": "want the problem store-unavailable"},
), waive(
	"fields of one hop end at the proxy, a malformed one is a lost answer, and the service cannot remove those of a layer in front",
	map[string]string{"R13g": "answer 1 is 201", "R13h": "the handler did not run: 502"},
), waive(
	"a request in chunks ends its connection, because net/http drops a length that stood beside them, as RFC 9112 permits",
	map[string]string{"R27h": "want [400 501]", "R47b": "EOF"},
))

// waive waives cases for a reason, by what each of them says.
func waive(reason string, cases map[string]string) (all []conformance.Waiver) {
	for id, says := range cases {
		all = append(all, conformance.Waiver{Case: id, Reason: reason, Says: says})
	}
	return all
}

// brief are the prefixes of the cases that every run has.
var brief = []string{"R12", "R23", "R27", "R28", "R34"}

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
			Serve: serveForwarded, Waivers: throughProxy,
		}
	})
}

func TestProxyWire(t *testing.T) { wire.RunOn(t, "proxy", serveForwarded) } //nolint:paralleltest // it measures memory
