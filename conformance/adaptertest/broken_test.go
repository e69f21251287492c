package adaptertest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/conformance/internal/broken"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// flawedAdapter is an adapter for net/http with a flaw, over memory.
func flawedAdapter(flaw broken.Flaw) adaptertest.Fixture {
	st := sync.OnceValue(memstore.New)
	return adaptertest.Fixture{
		Open:  func(testing.TB) store.Store { return st() },
		Serve: testapp.InTest(testapp.NetHTTP(broken.Middleware(flaw))),
	}
}

// An adapter without a flaw keeps every promise, so the flaws are why the others are
// rejected.
func TestAdapterWithoutFlawPassesEveryCase(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, func(testing.TB) adaptertest.Fixture { return flawedAdapter("") })
}

// Each flaw is rejected by the case that it names.
func TestBrokenAdaptersAreRejected(t *testing.T) {
	t.Parallel()
	for _, m := range broken.Adapters() {
		t.Run(string(m.Flaw), func(t *testing.T) {
			t.Parallel()
			f := flawedAdapter(m.Flaw)
			f.Patience = time.Second // a flaw may suppress the response
			wantRejected(t, m, f)
		})
	}
}

// wantRejected demands that the case named by a mutant fails.
func wantRejected(t *testing.T, m broken.Mutant, f adaptertest.Fixture) {
	t.Helper()
	failed, text := adaptertest.Failure(t, m.Case, f)
	t.Log(text)
	if !failed {
		t.Errorf("an adapter that %s passes %s", m.Does, m.Case)
	}
}
