// Package reprisetest tests the handlers of users against retries, crashes and failing
// stores.
//
// [Replay] and [Race] need only the handler, with its middleware:
//
//	reprisetest.Replay(t, server, reprisetest.Post("/orders", `{"item":"book"}`))
//
// An [App] is the handler as several processes over one store in memory, whose clock the
// test moves. It lets a process die before or after the handler, and the store fail:
//
//	app := reprisetest.New(t, protocol.Config{Required: true}, func(guard *protocol.Guard) http.Handler {
//		return newServer(database, guard)
//	})
//	app.Crash(reprisetest.Post("/orders", `{"item":"book"}`)) // the effect happened, its record did not
//	// … and now look into the database: how many orders has it?
//
// Every function fails the test if the middleware does not protect this handler, for
// example because a route was registered without it, or a status is never kept. Only the
// test can check how often the effect happened.
//
// Requests are served in the process, as net/http/httptest does it: handlers of net/http,
// Gin and Echo as they are, those of Fiber through [Func]. It works in a bubble of
// testing/synctest too. docs/guides/testing.md has more.
package reprisetest
