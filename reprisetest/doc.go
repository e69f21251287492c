// Package reprisetest tests your handlers against retries, crashes and failing stores.
//
// [Replay] and [Race] need only the handler, with its middleware:
//
//	reprisetest.Replay(t, server, reprisetest.Post("/orders", `{"item":"book"}`))
//
// An [App] runs the handler in several simulated processes over one store in memory,
// whose clock the test moves. It can let a process die before or after the handler, and
// let the store fail:
//
//	app := reprisetest.New(t, protocol.Config{Required: true}, func(guard *protocol.Guard) http.Handler {
//		return newServer(database, guard)
//	})
//	app.Crash(reprisetest.Post("/orders", `{"item":"book"}`)) // the effect happened, its record did not
//	// now check in the database how many orders there are
//
// Every function fails the test if the middleware does not protect this handler, for
// example because a route was registered without it, or a status is never kept. Only the
// test can check how often the effect happened.
//
// Requests are served without a network, with net/http/httptest: by handlers of net/http,
// Gin and Echo directly, by those of Fiber through [Func]. All of it works in a bubble of
// testing/synctest. docs/guides/testing.md has more.
package reprisetest
