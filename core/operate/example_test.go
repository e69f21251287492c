package operate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
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
	round, err := operate.Reconcile(context.Background(), records, ask, operate.ReconcileConfig{})
	fmt.Println(round.Executed, err)
	pay()
	// Output:
	// 0 false no answer from the bank
	// 0 false reprise: the operation did not run: the outcome of the last attempt is unknown
	// 1 <nil>
	// 8812 true <nil>
}

func ExampleNewAuditLog() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "fence" || a.Key == "elapsed" { // which differ in every run
			return slog.Attr{}
		}
		return a
	}})
	engine, err := reprise.New(memstore.New(), reprise.Config{Observer: operate.NewAuditLog(slog.New(handler))})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		begun, err := engine.Begin(context.Background(), reprise.Operation{Scope: "tenant-7", Key: "key-1"})
		if err == nil && begun.Attempt != nil {
			_, _ = begun.Attempt.Complete(reprise.Completion{Payload: []byte("charged")})
		}
	}
	// Output:
	// level=INFO msg="idempotency claimed" outcome=claimed id=3ef92e4e6e08 scope=d68629cd920f attempt=1
	// level=INFO msg="idempotency completed" end=recorded id=3ef92e4e6e08 scope=d68629cd920f attempt=1
	// level=INFO msg="idempotency replayed" outcome=replayed id=3ef92e4e6e08 scope=d68629cd920f
}
