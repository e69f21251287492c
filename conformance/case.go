package conformance

import (
	"fmt"
	"slices"
	"testing"
)

// Case is one promise that a suite tests.
type Case struct {
	ID     string // stable, never given to another promise; the name of the subtest
	Rule   string // the promise, in one line
	Source string // where it is made
	Needs  []Need // what the subject must have for the promise to concern it
}

// Need is something that not every subject has. A case that needs what a subject lacks is skipped, and says so.
type Need string

// What cases need.
const (
	Leases      Need = "leases"        // claims that lapse: a store whose claims are Atomic has none
	ExactTime   Need = "exact time"    // a clock that stands still between two calls of Advance
	CorruptHook Need = "corrupt hook"  // StoreFixture.Corrupt
	Waiter      Need = "Waiter"        // reprise.Waiter
	Inspector   Need = "Inspector"     // reprise.Inspector
	Purger      Need = "Purger"        // reprise.Purger
	Checker     Need = "Checker"       // reprise.Checker
	Binder      Need = "ContextBinder" // reprise.ContextBinder
)

// A Waiver declares that a subject is known not to keep a promise. The case still runs, and the test fails once the case
// passes, so that no waiver outlives its gap.
type Waiver struct {
	Case   string // ID
	Reason string // why the gap is there and what it means to users; printed
}

// Cases returns every case of the suites, in the order in which they run: those for stores, then those for adapters.
func Cases() []Case { return append(StoreCases(), AdapterCases()...) }

// StoreCases returns every case for stores, in the order in which they run.
func StoreCases() []Case {
	cases := make([]Case, len(storeCases))
	for i, c := range storeCases {
		cases[i] = c.clone()
	}
	return cases
}

// AdapterCases returns every case for adapters, in the order in which they run.
func AdapterCases() []Case {
	cases := make([]Case, len(adapterCases))
	for i, c := range adapterCases {
		cases[i] = c.clone()
	}
	return cases
}

func (c Case) clone() Case {
	c.Needs = slices.Clone(c.Needs)
	return c
}

// String shows the case as a failure prints it.
func (c Case) String() string { return fmt.Sprintf("%s: %s [%s]", c.ID, c.Rule, c.Source) }

// checkWaivers finds what is wrong with waivers of cases.
func checkWaivers(waivers []Waiver, cases []Case) error {
	for _, w := range waivers {
		if w.Reason == "" {
			return fmt.Errorf("conformance: the waiver of %q gives no reason", w.Case)
		}
		if !slices.ContainsFunc(cases, func(c Case) bool { return c.ID == w.Case }) {
			return fmt.Errorf("conformance: the waiver of %q names no case of the suite", w.Case)
		}
	}
	return nil
}

// waiverOf returns the waiver of a case, if there is one.
func waiverOf(waivers []Waiver, c Case) (Waiver, bool) {
	i := slices.IndexFunc(waivers, func(w Waiver) bool { return w.Case == c.ID })
	if i < 0 {
		return Waiver{}, false
	}
	return waivers[i], true
}

// judgeCase reports a case to tb: as it ends, or the other way round when it is waived.
func judgeCase(tb testing.TB, c Case, waivers []Waiver, test func(testing.TB)) {
	tb.Helper()
	if w, waived := waiverOf(waivers, c); waived {
		got := record(tb, test)
		switch {
		case got.Skipped():
			tb.Skip(got.text())
		case got.Failed():
			tb.Skipf("waived: %s\n%s\nfailed with: %s", w.Reason, c, got.text())
		default:
			tb.Fatalf("%s\nis waived and passes: remove its waiver (%s)", c, w.Reason)
		}
	}
	defer func() {
		if tb.Failed() {
			tb.Logf("broken: %s", c)
		}
	}()
	test(tb)
}
