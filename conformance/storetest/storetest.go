// Package storetest is the suite that every [reprise.Store] has to pass.
//
// A store is proven by a test of a few lines:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(tb testing.TB) storetest.Fixture {
//			server := startServer(tb) // or a shared one, with a key prefix or schema for this fixture alone
//			return storetest.Fixture{
//				Open:    func(tb testing.TB) reprise.Store { return mystore.New(server.Dial(tb)) },
//				Advance: conformance.Sleep,
//			}
//		})
//	}
//
// Each case is a subtest named by its ID, with a fixture of its own, in parallel with the
// others. A case that fails prints the promise that was broken and where it is made. What
// a store lacks, such as an optional ability, is skipped with the reason; a promise that
// it is known to break is declared by a [conformance.Waiver], which has to go once the
// case passes.
package storetest

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/internal/suite"

	reprise "github.com/reprise-go/reprise/core"
)

// Fixture is a store under test. Every case has a fixture of its own; cases run in
// parallel, so fixtures that share a server take a key prefix, schema or table each.
// Cleanup is for the fixture to register with the [testing.TB] it is given.
type Fixture struct {
	// Open returns a handle on the store, connected by itself: two handles are two
	// processes over the same records. It is called twice. A store that lives in one
	// process returns the same store again.
	Open func(testing.TB) reprise.Store

	// Advance lets at least d pass on the store's clock: by moving the clock where it can
	// be moved, else by [conformance.Sleep].
	//
	// With a nil Advance each case runs in a bubble of [synctest], where time passes only
	// when all sleep. It is for stores that read package time, and Open has to create the
	// store, so that it belongs to the bubble.
	Advance func(testing.TB, time.Duration)

	// Grain is the span in which the cases count time: a lease that shall lapse is one
	// Grain long. Less is faster; it must be well above the resolution of the store's
	// clock. Zero is 100 ms.
	Grain time.Duration

	// Atomic says that the claims of the store are Atomic. What concerns leases does not
	// apply to it then.
	Atomic bool

	// Corrupt damages the record of id, in progress or completed, in the backing store.
	// It skips the test, with a reason, when the backing store itself makes such damage
	// impossible. With nil the cases about damage are skipped.
	Corrupt func(tb testing.TB, id reprise.ID, how Corruption)

	// Waivers are the promises that the store is known not to keep.
	Waivers []conformance.Waiver
}

// Corruption is a way to damage a record. See [Fixture].
type Corruption string

// The ways to damage a record.
const (
	UnknownVersion Corruption = "unknown version" // the version of a later layout
	UnknownState   Corruption = "unknown state"   // neither in progress nor completed
	Truncated      Corruption = "truncated"       // cut short, or without one of its fields
	WrongType      Corruption = "wrong type"      // a value that is no record at all
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

// check finds what is wrong with the fixture itself.
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
	claimCases, takeoverCases, completeCases, releaseCases, renewCases, retentionCases,
	payloadCases, errorCases, corruptCases, concurrencyCases, inspectCases, abilityCases,
)

// run tests the case, in a bubble if the fixture has no clock of its own.
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
	if skipped { // in the bubble; nothing passed
		t.SkipNow()
	}
}

// judge reports the case to tb: as it ends, or the other way round when it is waived.
func (c *testCase) judge(tb testing.TB, f Fixture) {
	tb.Helper()
	e := newEnv(tb, f)
	defer e.releaseHeld()
	if why, lacking := e.lacks(c.Needs); lacking {
		tb.Skipf("not applicable: %s needs %s", c.ID, why)
	}
	suite.Judge(tb, c.Case, f.Waivers, func(tb testing.TB) { c.test(e.reportingTo(tb)) })
}
