// Package storetest is the suite for every [store.Store].
//
// A test of a store has a few lines:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(tb testing.TB) storetest.Fixture {
//			server := startServer(tb) // or a shared one, with a key prefix or schema for this fixture alone
//			return storetest.Fixture{
//				Open:    func(tb testing.TB) store.Store { return mystore.New(server.Dial(tb)) },
//				Advance: conformance.Sleep,
//			}
//		})
//	}
//
// Each case is a subtest named by its ID, with its own fixture, in parallel with the
// others. A failing case prints the broken promise and its source. Cases about something
// that the store does not have, such as an optional ability, are skipped with the reason.
// A [conformance.Waiver] declares a case that the store is known to fail, and must be
// removed once the case passes.
package storetest

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/internal/suite"
	"github.com/reprise-go/reprise/core/store"
)

// Fixture is a store under test. Every case has a new fixture; cases run in parallel, so
// fixtures that share a server use a key prefix, schema or table each. A fixture
// registers its cleanup with the [testing.TB] it is given.
type Fixture struct {
	// Open returns a handle on the store with its own connections. It is called twice:
	// two handles stand for two processes over the same records. For a store that lives
	// in one process, Open returns the same store again.
	Open func(testing.TB) store.Store

	// Advance lets at least d pass on the store's clock: it moves the clock if it can, or
	// is [conformance.Sleep].
	//
	// With a nil Advance each case runs in a bubble of [synctest], where time passes only
	// while every goroutine sleeps. It is for stores that read package time; Open must
	// create the store, so that it belongs to the bubble.
	Advance func(testing.TB, time.Duration)

	// Grain is the unit of time of the cases: a lease that a case lets lapse is one Grain
	// long. A short Grain makes the suite faster; it must be well above the resolution of
	// the store's clock. Zero is 100 ms.
	Grain time.Duration

	// Effects reaches the transactions of a store that is a [store.Transactor]. If it is
	// nil, the cases about them are skipped.
	Effects *Effects

	// Corrupt damages the record of id, in progress or completed, in the backing store.
	// If the backing store makes such damage impossible, it skips the test with a reason.
	// If Corrupt is nil, the cases about damage are skipped.
	Corrupt func(tb testing.TB, id store.ID, how Corruption)

	// Waivers declare the cases that the store is known to fail.
	Waivers []conformance.Waiver
}

// Corruption is a way to damage a record, for [Fixture].
type Corruption string

// The ways to damage a record.
const (
	UnknownVersion Corruption = "unknown version" // the version of a later layout
	UnknownState   Corruption = "unknown state"   // neither in progress nor completed
	Truncated      Corruption = "truncated"       // cut short, or without one of its fields
	WrongType      Corruption = "wrong type"      // a value that is not a record
)

const defaultGrain = 100 * time.Millisecond

// Cases returns every case, in the order in which they run.
func Cases() []conformance.Case {
	all := make([]conformance.Case, len(cases))
	for i, c := range cases {
		all[i] = suite.Clone(c.Case)
	}
	return all
}

// Run runs every case for stores as a parallel subtest of t, named by the ID of the case.
// newFixture is called once for each.
func Run(t *testing.T, newFixture func(testing.TB) Fixture) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if err := f.check(); err != nil {
				t.Fatal(err)
			}
			c.run(t, f)
		})
	}
}

// check reports an invalid fixture.
func (f *Fixture) check() error {
	if f.Open == nil {
		return errors.New("storetest: Fixture.Open is nil")
	}
	return suite.CheckWaivers(f.Waivers, Cases())
}

// testCase is a case for stores and how it is tested.
type testCase struct {
	conformance.Case

	test func(*env)
}

var cases = slices.Concat(
	claimCases, takeoverCases, completeCases, releaseCases, unknownCases, renewCases, retentionCases, policyCases,
	payloadCases, errorCases, corruptCases, unreadableCases, raceCases, inspectCases, recordCases, descriptionCases, resolveCases, forgetCases,
	listCases, abilityCases, transactorCases,
)

// run tests the case, in a bubble if the fixture has no clock.
func (c *testCase) run(t *testing.T, f Fixture) {
	t.Helper()
	if f.Advance != nil {
		c.judge(t, f)
		return
	}
	skipped := false
	synctest.Test(t, func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		c.judge(t, f)
	})
	if skipped { // in the bubble no time passed
		t.SkipNow()
	}
}

// judge runs the case and reports its result to tb, inverted if the case is waived.
func (c *testCase) judge(tb testing.TB, f Fixture) {
	tb.Helper()
	e := newEnv(tb, f)
	if why, lacking := e.lacks(c.Needs); lacking {
		tb.Skipf("not applicable: %s needs %s", c.ID, why)
	}
	suite.Judge(tb, c.Case, f.Waivers, func(tb testing.TB) { c.test(e.reportingTo(tb)) })
}
