package conformance

import "fmt"

// Case is one promise, which a suite tests.
type Case struct {
	ID     string // stable and never reused; the name of the subtest
	Rule   string // the promise, in one line
	Source string // where it is made
	Needs  []Need // requirements without which the case does not apply
}

// Need is something that not every store or adapter has. A case with an unmet need is
// skipped with a message.
type Need string

// The needs of cases.
const (
	ExactTime   Need = "exact time"   // a clock that stands still between two calls of Advance
	CorruptHook Need = "corrupt hook" // storetest.Fixture.Corrupt
	Waiter      Need = "Waiter"       // store.Waiter
	Inspector   Need = "Inspector"    // store.Inspector
	Counter     Need = "Counter"      // store.Counter
	Purger      Need = "Purger"       // store.Purger
	Checker     Need = "Checker"      // store.Checker
	Meter       Need = "Meter"        // store.Meter
	Transactor  Need = "Transactor"   // storetest.Fixture.Effects
)

// A Waiver declares that a store or adapter is known to fail a case. The case still runs,
// and the test fails once the case passes, so that a waiver does not outlive the failure.
type Waiver struct {
	Case   string // ID
	Reason string // why the case fails and how that affects users; printed
	Says   string // a part of what the failed case says, so that it fails for no other reason
	Silent bool   // it fails because nothing comes, so a second is long enough to wait for it
}

// String returns the case as a failure prints it.
func (c Case) String() string { return fmt.Sprintf("%s: %s [%s]", c.ID, c.Rule, c.Source) }
