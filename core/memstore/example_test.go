package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

// The engine makes these calls; they show what a store does.
func ExampleNew() {
	store, ctx := memstore.New(), context.Background()
	id := reprise.DeriveID("tenant-1", "", "8e03978e-40d5-43dd-bc93-6894a57f9324")
	owner := reprise.NewOwner()
	claim := reprise.ClaimRequest{ID: id, Owner: owner, Lease: 30 * time.Second, Retention: 24 * time.Hour}

	first, _ := store.Claim(ctx, claim)
	fmt.Println(first.Outcome, first.Attempt)

	claim.Owner = reprise.NewOwner()
	second, _ := store.Claim(ctx, claim)
	fmt.Println(second.Outcome)

	_ = store.Complete(ctx, reprise.CompleteRequest{ID: id, Owner: owner, Payload: []byte("201 Created"), Retention: 24 * time.Hour})
	third, _ := store.Claim(ctx, claim)
	fmt.Printf("%v %s\n", third.Outcome, third.Payload)
	// Output:
	// claimed 1
	// in-progress
	// completed 201 Created
}

func ExampleNewBounded() {
	store, err := memstore.NewBounded(memstore.Bounds{Records: 1, Bytes: 64 << 20})
	if err != nil {
		panic(err)
	}
	for _, key := range []string{"one", "two"} {
		_, err := store.Claim(context.Background(), reprise.ClaimRequest{
			ID: reprise.DeriveID("tenant-1", "", key), Owner: reprise.NewOwner(), Lease: time.Minute, Retention: time.Hour,
		})
		fmt.Println(key, errors.Is(err, reprise.ErrFull))
	}
	// Output:
	// one false
	// two true
}
