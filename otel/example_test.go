package repriseotel_test

import (
	"context"
	"fmt"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/memstore"
	repriseotel "github.com/reprise-go/reprise/otel"
)

// The telemetry stands between the engine and its store, and observes the engine. It
// reports to the global providers of OpenTelemetry unless its Config names others.
func ExampleNew() {
	telemetry, err := repriseotel.New(repriseotel.Config{})
	if err != nil {
		panic(err)
	}
	engine, err := reprise.New(telemetry.Store(memstore.New()), reprise.Config{Observer: telemetry, Detach: repriseotel.Detach})
	if err != nil {
		panic(err)
	}
	stop, err := telemetry.Watch("payments", engine) // gauges, until stop
	if err != nil {
		panic(err)
	}

	for range 2 {
		op := reprise.Operation{Scope: "tenant-1", Key: "7c1f"}
		paid, err := job.Do(context.Background(), engine, op, nil, func(context.Context) (int, error) { return 42, nil })
		fmt.Println(paid.Value, paid.Replayed, err)
	}
	fmt.Println(stop(), engine.Close(context.Background()))
	// Output:
	// 42 false <nil>
	// 42 true <nil>
	// <nil> <nil>
}
