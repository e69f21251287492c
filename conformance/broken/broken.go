// Package broken holds stores that are wrong on purpose: a small store that keeps the whole contract, and one flaw at a time
// that it can be given. A suite that nobody has seen fail proves nothing, so each flaw names a case that rejects it, and a test
// runs them all.
//
// Without a flaw the store is a reference to compare others with. It is not for use: it is slow, never forgets, and has
// one lock.
package broken

// Flaw is one way to be wrong. The zero value is none.
type Flaw string

// Mutant is a store with a flaw.
type Mutant struct {
	Flaw Flaw
	Does string // what the store does wrong
	Case string // the ID of a case that rejects it
}

// Stores returns every store with a flaw.
func Stores() []Mutant {
	var all []Mutant
	for _, part := range [][]Mutant{claimFlaws, completeFlaws, releaseFlaws, renewFlaws, recordFlaws, abilityFlaws} {
		all = append(all, part...)
	}
	return all
}
