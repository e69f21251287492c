package storetest

import (
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
		Effects: &Effects{Write: broken.Write, Exec: broken.Exec, Count: func(testing.TB) int { return backing().Effects() }},
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

// Each flaw is rejected by the case that it names.
func TestBrokenStoresAreRejected(t *testing.T) {
	t.Parallel()
	for _, m := range broken.Stores() {
		t.Run(string(m.Flaw), func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(cases, func(c testCase) bool { return c.ID == m.Case })
			if i < 0 {
				t.Fatalf("there is no case %q", m.Case)
			}
			if !rejects(t, &cases[i], m.Flaw) {
				t.Errorf("a store that %s passes %s", m.Does, m.Case)
			}
		})
	}
}

// Each case rejects a flaw: one that no flaw names is tried on one after the other.
func TestCasesRejectABrokenStore(t *testing.T) {
	t.Parallel()
	for i := range cases {
		c := &cases[i]
		if slices.ContainsFunc(broken.Stores(), func(m broken.Mutant) bool { return m.Case == c.ID }) {
			continue // as above
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			for _, m := range broken.Stores() {
				if rejects(t, c, m.Flaw) {
					return
				}
			}
			t.Error("no broken store fails it")
		})
	}
}

// rejects reports whether a case fails on a store with a flaw.
func rejects(t *testing.T, c *testCase, flaw broken.Flaw) bool {
	t.Helper()
	got := tryCase(t, c, brokenFixture(flaw))
	if strings.Contains(got.Text(), "panic:") {
		t.Errorf("the store panics: %s", got.Text())
	}
	return got.Failed()
}
