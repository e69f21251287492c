package storetest

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/internal/suite"

	"github.com/reprise-go/reprise/conformance/internal/broken"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

func TestCasesHaveUniqueNamesAndPromises(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.ID] || !name.MatchString(c.ID) {
			t.Errorf("the ID %q is used twice or misspelt", c.ID)
		}
		seen[c.ID] = true
		if !strings.HasSuffix(c.Rule, ".") || c.Source == "" {
			t.Errorf("%s: the rule is %q, from %q", c.ID, c.Rule, c.Source)
		}
	}
	if want := len(cases); len(seen) != want {
		t.Errorf("%d cases are listed of %d", len(seen), want)
	}
}

// find returns a case for stores by its ID.
func find(t *testing.T, id string) *testCase {
	t.Helper()
	for i := range cases {
		if cases[i].ID == id {
			return &cases[i]
		}
	}
	t.Fatalf("there is no case %q", id)
	return nil
}

func TestFailureNamesTheRuleAndItsSource(t *testing.T) {
	t.Parallel()
	c := find(t, "complete-once")
	got := tryCase(t, c, brokenFixture("complete-unfenced"))
	if !got.Failed() || !strings.Contains(got.Text(), c.Rule) || !strings.Contains(got.Text(), c.Source) {
		t.Errorf("failed %v, with %q", got.Failed(), got.Text())
	}
}

func TestWaivedCaseIsSkippedWhileItFailsAndFailsOnceItPasses(t *testing.T) {
	t.Parallel()
	c := find(t, "complete-once")
	waived := func(flaw broken.Flaw, says string) suite.Recording {
		f := brokenFixture(flaw)
		f.Waivers = []conformance.Waiver{{Case: c.ID, Reason: "no fences in this store", Says: says}}
		return tryCase(t, c, f)
	}
	got := waived("complete-unfenced", "want "+store.ErrLeaseLost.Error())
	if got.Failed() || !got.Skipped() {
		t.Errorf("a waived case that fails: failed %v, skipped %v", got.Failed(), got.Skipped())
	}
	for _, want := range []string{"no fences in this store", c.Rule, "want " + store.ErrLeaseLost.Error()} {
		if !strings.Contains(got.Text(), want) {
			t.Errorf("%q is missing from %q", want, got.Text())
		}
	}
	got = waived("", "want "+store.ErrLeaseLost.Error())
	if !got.Failed() || !strings.Contains(got.Text(), "remove its waiver") {
		t.Errorf("a waived case that passes: failed %v, with %q", got.Failed(), got.Text())
	}
	got = waived("complete-unfenced", "the store is down")
	if !got.Failed() || !strings.Contains(got.Text(), "fails otherwise") {
		t.Errorf("a waived case that fails for another reason: failed %v, with %q", got.Failed(), got.Text())
	}
}

func TestFixtureMistakesAreFound(t *testing.T) {
	t.Parallel()
	open := func(testing.TB) store.Store { return memstore.New() }
	for name, f := range map[string]Fixture{
		"no Open":          {},
		"waiver of no ID":  {Open: open, Waivers: []conformance.Waiver{{Case: "claim-frist", Reason: "misspelt", Says: "a"}}},
		"waiver unfounded": {Open: open, Waivers: []conformance.Waiver{{Case: "claim-first", Says: "a"}}},
		"waiver of any":    {Open: open, Waivers: []conformance.Waiver{{Case: "claim-first", Reason: "unlike its failure"}}},
	} {
		if f.check() == nil {
			t.Errorf("%s: the fixture is accepted", name)
		}
	}
}

// bare is a store without any ability.
type bare struct{ store.Store }

func TestMissingAbilitiesAreReported(t *testing.T) {
	t.Parallel()
	f := Fixture{Open: func(testing.TB) store.Store { return bare{memstore.New()} }}
	for id, lacking := range map[string]string{
		"watch-stop": "Waiter", "purge-keeps": "Purger", "list": "Inspector", "tx-commit": "Transactor",
		"check-findings": "Checker", "corrupt-state": "corrupt hook", "usage": "Meter",
	} {
		if got := tryCase(t, find(t, id), f); !got.Skipped() || got.Failed() || !strings.Contains(got.Text(), lacking) {
			t.Errorf("%s: skipped %v, failed %v, with %q", id, got.Skipped(), got.Failed(), got.Text())
		}
	}
	var bubbled *testing.T
	t.Run("in a bubble", func(t *testing.T) {
		bubbled = t
		find(t, "watch-stop").run(t, f)
	})
	if !bubbled.Skipped() {
		t.Error("a case that was skipped in its bubble counts as passed")
	}
	f.Advance = func(testing.TB, time.Duration) {}
	if got := suite.Record(t, func(tb testing.TB) { find(t, "takeover-at-the-end").judge(tb, f) }); !got.Skipped() {
		t.Errorf("a case that needs exact time ran without: %q", got.Text())
	}
}

// The clock is moved by the test, instead of sleeping in a bubble.
func TestStoreOnAManualClock(t *testing.T) {
	t.Parallel()
	Run(t, func(testing.TB) Fixture {
		st := memstore.New()
		return Fixture{
			Open:    func(testing.TB) store.Store { return st },
			Advance: func(_ testing.TB, d time.Duration) { st.Advance(d) },
		}
	})
}
