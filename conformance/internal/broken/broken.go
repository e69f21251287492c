// Package broken has stores and adapters that are wrong on purpose: a small store that
// keeps the whole contract and an adapter for net/http that keeps every rule, each with
// one flaw at a time. A suite proves its rules only when it rejects a violation, so each
// flaw names a case that rejects it, and a test runs them all.
//
// Without a flaw both are references to compare others with. Do not use them for anything
// else: the store is slow, never purges, and has one lock; the adapter remembers every
// response.
package broken

// Flaw is one mistake. The zero value is no mistake.
type Flaw string

// Mutant is a store or an adapter with a flaw.
type Mutant struct {
	Flaw Flaw
	Does string // the wrong behaviour
	Case string // the ID of a case that rejects it
}

// Stores returns every store with a flaw.
func Stores() []Mutant {
	var all []Mutant
	for _, part := range [][]Mutant{claimFlaws, completeFlaws, releaseFlaws, unknownFlaws, renewFlaws, recordFlaws, policyFlaws, abilityFlaws, operatorFlaws, descriptionFlaws} {
		all = append(all, part...)
	}
	return all
}
