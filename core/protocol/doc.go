// Package protocol serves the Idempotency-Key header: it decides, for one HTTP request of any framework, whether its handler runs, and
// what the client gets.
//
// A [Guard] is one policy over one [reprise.Engine]. An adapter turns its framework's request into a [Request] and asks
// [Guard.Admit]. The answer is a [Admission]: pass the request on untouched, write a [Response] (a replay and a rejection are the
// same to the adapter), or run the handler against the [Exchange]. After the handler, the exchange keeps or releases what came of
// it, and says what to send.
//
// What it guarantees to the client of a keyed request: the handler runs once, and every retry gets the status, the kept fields and
// the body of that run. A key that is malformed is refused, never ignored. A key that comes back with another request is
// refused. Without a definite answer from the store nothing runs.
//
// What it does not: it cannot undo an effect, nor tell whether a handler that died had one; see [reprise.Preset].
//
// The rules have numbers, R1 to R47, which comments and tests cite; docs/protocol.md lists them for users. The package imports neither
// net/http nor any framework.
package protocol
