package storetest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/reprise-go/reprise/conformance/internal/suite"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/conformance/internal/broken"
)

// brokenFixture returns a fixture of a store with a flaw, in which every case applies.
func brokenFixture(flaw broken.Flaw) Fixture {
	backing := sync.OnceValue(func() *broken.Backing { return broken.New(flaw) })
	return Fixture{
		Open: func(testing.TB) store.Store { return backing().Open() },
		Corrupt: func(tb testing.TB, id store.ID, _ Corruption) {
			if !backing().Damage(id) {
				tb.Fatal("there is no record to damage")
			}
		},
	}
}

// tryCase runs a case on a fixture without failing t.
func tryCase(t *testing.T, c *testCase, f Fixture) suite.Recording {
	t.Helper()
	var got suite.Recording
	synctest.Test(t, func(t *testing.T) {
		got = suite.Record(t, func(tb testing.TB) { c.judge(tb, f) })
	})
	return got
}

func TestStoreWithoutFlawPassesEveryCase(t *testing.T) {
	t.Parallel()
	Run(t, func(testing.TB) Fixture { return brokenFixture("") })
}

// Each flaw is rejected by the case that it names, and each case rejects a flaw.
func TestBrokenStoresAreRejected(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	unseenToFail := map[string]bool{}
	for _, c := range cases {
		unseenToFail[c.ID] = true
	}
	t.Run("flaw", func(t *testing.T) {
		for _, m := range broken.Stores() {
			t.Run(string(m.Flaw), func(t *testing.T) {
				t.Parallel()
				var failed []string
				for i := range cases {
					got := tryCase(t, &cases[i], brokenFixture(m.Flaw))
					if got.Failed() {
						failed = append(failed, cases[i].ID)
					}
					if strings.Contains(got.Text(), "panic:") {
						t.Errorf("the store panics: %s", got.Text())
					}
				}
				if !slices.Contains(failed, m.Case) {
					t.Errorf("a store that %s passes %s; it fails %q", m.Does, m.Case, failed)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, id := range failed {
					delete(unseenToFail, id)
				}
			})
		}
	})
	if len(unseenToFail) > 0 {
		t.Errorf("nothing fails %q", slices.Sorted(maps.Keys(unseenToFail)))
	}
}
