package reprisetest_test

import (
	"fmt"
	"net/http"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/reprisetest"
)

// A request and its retry: the handler runs once. In a test, t is its *testing.T.
func ExampleReplay() {
	t := new(judge)
	defer t.end()
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		panic(err)
	}
	var database orders
	server := http.NewServeMux()
	server.Handle("POST /orders", once(guard, database.create))
	server.HandleFunc("POST /refunds", database.create) // the middleware is missing

	first, again := reprisetest.Replay(t, server, reprisetest.Post("/orders", "book"))
	fmt.Printf("%d %s%d %s", first.Status, first.Body, again.Status, again.Body)
	reprisetest.Replay(t, server, reprisetest.Post("/refunds", "book"))
	// Output:
	// 201 order 1: book
	// 201 order 1: book
	// FAIL: the retry is not a replay: the handler ran again; the route may be without the middleware, the method not keyed, or the request without a key
}

// Simultaneous duplicates: one of them runs.
func ExampleRace() {
	t := new(judge)
	defer t.end()
	var database orders
	app := reprisetest.New(t, protocol.Config{}, func(guard *protocol.Guard) http.Handler { return once(guard, database.create) })

	ran := reprisetest.Race(t, app.Handler(), 10, reprisetest.Post("/orders", "book"))
	fmt.Printf("%s%d order\n", ran.Body, database.count())
	// Output:
	// order 1: book
	// 1 order
}

// A process dies between the effect and its record. This handler does not look at its
// attempt, so the retry orders again.
func ExampleApp_Crash() {
	t := new(judge)
	defer t.end()
	var database orders
	app := reprisetest.New(t, protocol.Config{}, func(guard *protocol.Guard) http.Handler { return once(guard, database.create) })

	app.Crash(reprisetest.Post("/orders", "book"))
	fmt.Println(database.count(), "orders")
	// Output:
	// 2 orders
}

// A process dies before the handler.
func ExampleApp_Lapse() {
	t := new(judge)
	defer t.end()
	var database orders
	app := reprisetest.New(t, protocol.Config{}, func(guard *protocol.Guard) http.Handler { return once(guard, database.create) })

	response := app.Lapse(reprisetest.Post("/orders", "book"))
	fmt.Printf("%d %s", response.Status, response.Body)
	// Output:
	// 201 order 1: book
}

// The store fails at each point of a request.
func ExampleApp_StoreDown() {
	t := new(judge)
	defer t.end()
	var database orders
	app := reprisetest.New(t, protocol.Config{}, func(guard *protocol.Guard) http.Handler { return once(guard, database.create) })

	refused := app.StoreDown(reprisetest.Post("/orders", "book"))
	fmt.Println("before the handler:", refused.Status, database.count(), "orders")

	first, _ := app.StoreFailsAfterRun(reprisetest.Post("/orders", "book"))
	fmt.Println("after it:", first.Status, first.Header.Get("Idempotency-Status"), database.count(), "order")

	first, _ = app.StoreLosesReply(reprisetest.Post("/orders", "book"))
	fmt.Println("in the last moment:", first.Status, database.count(), "orders")
	// Output:
	// before the handler: 503 0 orders
	// after it: 201 unrecorded 1 order
	// in the last moment: 201 2 orders
}
