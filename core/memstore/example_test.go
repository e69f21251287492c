package memstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// The engine makes these calls; they show the operations of a store.
func ExampleNew() {
	st, ctx := memstore.New(), context.Background()
	id := store.DeriveID("tenant-1", "", "8e03978e-40d5-43dd-bc93-6894a57f9324")
	owner := store.NewOwner()
	claim := store.ClaimRequest{ID: id, Owner: owner, Lease: 30 * time.Second, Policy: store.Policy{Retention: 24 * time.Hour}}

	first, _ := st.Claim(ctx, claim)
	fmt.Println(first.Outcome, first.Attempt)

	claim.Owner = store.NewOwner()
	second, _ := st.Claim(ctx, claim)
	fmt.Println(second.Outcome)

	_ = st.Complete(ctx, store.CompleteRequest{ID: id, Owner: owner, Payload: []byte("201 Created"), Policy: store.Policy{Retention: 24 * time.Hour}})
	third, _ := st.Claim(ctx, claim)
	fmt.Printf("%v %s\n", third.Outcome, third.Payload)
	// Output:
	// claimed 1
	// in-progress
	// completed 201 Created
}
