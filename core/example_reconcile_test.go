package reprise_test

import (
	"context"
	"errors"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// The bank booked a payment and its answer was lost. A round asks it, by the key that the
// function gave it, and the next delivery gets the result.
func ExampleReconcile() {
	records := memstore.New()
	engine, err := reprise.New(records, reprise.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	booked := map[string]int{} // by key: the bank's
	pay := func() {
		op := reprise.Operation{Scope: "payments", Key: "order-1"}
		paid, err := job.Do(context.Background(), engine, op, nil, func(ctx context.Context) (int, error) {
			attempt, _ := reprise.AttemptFrom(ctx)
			key, err := attempt.Key("charge")
			if err != nil {
				return 0, err
			}
			booked[key] = 8812
			return 0, job.Unknown(errors.New("no answer from the bank"))
		})
		fmt.Println(paid.Value, paid.Replayed, err)
	}
	pay()
	pay()

	ask := func(_ context.Context, r store.Record) (*store.Resolution, error) {
		number, ok := booked[r.Key("charge")]
		if !ok {
			return &store.Resolution{Forget: true}, nil
		}
		payload, err := job.EncodeResult(nil, number, nil)
		return &store.Resolution{Payload: payload}, err
	}
	round, err := reprise.Reconcile(context.Background(), records, ask, reprise.ReconcileConfig{})
	fmt.Println(round.Executed, err)
	pay()
	// Output:
	// 0 false no answer from the bank
	// 0 false reprise: the operation did not run: the outcome of the last attempt is unknown
	// 1 <nil>
	// 8812 true <nil>
}
