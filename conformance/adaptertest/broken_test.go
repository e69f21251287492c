package adaptertest_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"
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
		Serve: testapp.InTest(flawedServer(flaw)), Advance: conformance.Sleep,
	}
}

// flawedServer builds servers of net/http whose adapter, or whose listener, has a flaw.
func flawedServer(flaw broken.Flaw) func(*testapp.App) testapp.Server {
	return func(a *testapp.App) testapp.Server {
		return server{testapp.NetHTTP(broken.Middleware(flaw))(a), flaw}
	}
}

type server struct {
	testapp.Server

	flaw broken.Flaw
}

// Serve implements [testapp.Server].
func (s server) Serve(ln net.Listener) error { return s.Server.Serve(broken.Listener(s.flaw, ln)) }

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

// A store with a flaw shows through the adapter, where a client can see it.
func TestBrokenStoresAreRejectedThroughAnAdapter(t *testing.T) {
	t.Parallel()
	for flaw, id := range map[broken.Flaw]string{
		"no-exclusion":                 "R20c",
		"progress-before-fingerprint":  "R22c",
		"completed-before-fingerprint": "R22b",
		"complete-not-repeatable":      "R41d",
		"payload-ends-at-nul":          "R12a",
		"payload-cut":                  "R12a",
		"preset-of-retry":              "R38b",
		"preset-forgotten":             "R38b",
		"horizon-replays":              "R37e",
		"horizon-forgotten":            "R37e",
		"retention-of-retry":           "R37g",
		"takeover-once-too-often":      "R38c",
		"lease-early":                  "R38a",
		"renew-nothing":                "R39",
		"unknown-runs":                 "R52a",
		"unknown-taken-over":           "R52a",
		"unknown-before-fingerprint":   "R52a",
		"unknown-hidden":               "R52b",
		"unknown-not-resolved":         "R52b",
	} {
		t.Run(string(flaw), func(t *testing.T) {
			t.Parallel()
			backing := broken.New(flaw)
			wantRejected(t, broken.Mutant{Flaw: flaw, Does: "has a store with the flaw " + string(flaw), Case: id}, adaptertest.Fixture{
				Open:  func(testing.TB) store.Store { return backing.Open() },
				Serve: testapp.InTest(testapp.NetHTTP(broken.Middleware(""))), Advance: conformance.Sleep, Patience: 3 * time.Second,
			})
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
