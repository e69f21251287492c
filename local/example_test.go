package repriselocal_test

import (
	"context"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	repriselocal "github.com/reprise-go/reprise/local"
)

// The store inside stands for Redis or PostgreSQL, which answers the first two replays.
func Example() {
	ctx := context.Background()
	store, err := repriselocal.New(memstore.New(), repriselocal.Config{})
	if err != nil {
		panic(err)
	}
	engine, err := reprise.New(store, reprise.Config{})
	if err != nil {
		panic(err)
	}
	defer engine.Close(ctx)
	pay := reprise.Operation{Scope: "tenant", Key: "8e03978e-40d5-43dd-bc93-6894a57f9324"}
	for range 5 {
		result, err := engine.Begin(ctx, pay)
		if err != nil {
			panic(err)
		}
		if result.Outcome == reprise.Claimed {
			if _, err := result.Attempt.Complete(reprise.Completion{Payload: []byte("paid")}); err != nil {
				panic(err)
			}
			continue
		}
		fmt.Printf("%v: %s\n", result.Outcome, result.Payload)
	}
	stats := store.Stats()
	fmt.Println("hits", stats.Hits, "misses", stats.Misses)
	// Output:
	// completed: paid
	// completed: paid
	// completed: paid
	// completed: paid
	// hits 2 misses 3
}
