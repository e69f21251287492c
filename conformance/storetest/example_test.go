package storetest_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance/storetest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// A test of a store is a call of Run. This store lives in one process and reads package
// time, so its fixture opens the same store twice and needs no Advance. A store with a
// server connects in Open and has [conformance.Sleep] as its Advance.
func ExampleRun() {
	testStore := func(t *testing.T) {
		storetest.Run(t, func(testing.TB) storetest.Fixture {
			st := sync.OnceValue(memstore.New)
			return storetest.Fixture{Open: func(testing.TB) store.Store { return st() }}
		})
	}
	_ = testStore // call it TestStore, in the package of the store
}

// Cases are the promises that a store is held to; each is a subtest.
func ExampleCases() {
	first := storetest.Cases()[0]
	fmt.Println(first.ID)
	fmt.Println(first.Rule)
	fmt.Println(first.Source)
	// Output:
	// claim-first
	// The first claim of an ID is granted as attempt 1, with the rest of its lease.
	// Store.Claim
}
