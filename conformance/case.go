package conformance

import "fmt"

// Case is one promise that a suite tests.
type Case struct {
	ID     string // stable, never given to another promise; the name of the subtest
	Rule   string // the promise, in one line
	Source string // where it is made
	Needs  []Need // what the subject must have for the promise to concern it
}

// Need is something that not every subject has. A case that needs what a subject lacks is
// skipped, and says so.
type Need string

// What cases need.
const (
	Leases      Need = "leases"        // claims that lapse: a store whose claims are Atomic has none
	ExactTime   Need = "exact time"    // a clock that stands still between two calls of Advance
	CorruptHook Need = "corrupt hook"  // storetest.Fixture.Corrupt
	Waiter      Need = "Waiter"        // reprise.Waiter
	Inspector   Need = "Inspector"     // reprise.Inspector
	Purger      Need = "Purger"        // reprise.Purger
	Checker     Need = "Checker"       // reprise.Checker
	Binder      Need = "ContextBinder" // reprise.ContextBinder

	AtomicClaims Need = "Atomic claims" // a store whose claims are Atomic
)

// A Waiver declares that a subject is known not to keep a promise. The case still runs,
// and the test fails once the case passes, so that no waiver outlives its gap.
type Waiver struct {
	Case   string // ID
	Reason string // why the gap is there and what it means to users; printed
}

// String shows the case as a failure prints it.
func (c Case) String() string { return fmt.Sprintf("%s: %s [%s]", c.ID, c.Rule, c.Source) }
