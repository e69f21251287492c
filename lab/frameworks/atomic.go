// Package frameworks has the cases that run over each framework with a store that no
// adapter needs for its own tests.
package frameworks

import (
	"slices"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/serve/sqlitefile"
)

// RunAtomic runs the cases of stores whose effects commit with the response, over a file
// of SQLite of each case. All others run beside the adapter, over memory.
func RunAtomic(t *testing.T, build func(*testapp.App) testapp.Server) {
	t.Helper()
	var ids []string
	for _, c := range adaptertest.Cases() {
		if slices.Contains(c.Needs, conformance.AtomicClaims) {
			ids = append(ids, c.ID)
		}
	}
	adaptertest.Run(t, func(tb testing.TB) adaptertest.Fixture {
		tb.Helper()
		st := sync.OnceValue(func() store.Store { return sqlitefile.Transactional(tb, sqlitefile.New(tb)) })
		return adaptertest.Fixture{
			Open: func(testing.TB) store.Store { return st() }, Serve: testapp.InTest(build), Advance: conformance.Sleep, Atomic: true,
		}
	}, ids...)
}
