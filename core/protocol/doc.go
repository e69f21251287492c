// Package protocol serves the Idempotency-Key header: for one HTTP request of any
// framework, it decides whether the handler runs, and which response the client gets.
//
// A [Guard] is one policy over one [reprise.Engine]: [New] makes both from a store, and
// [Guard.With] makes the guards of further policies over the same engine. An adapter
// translates its framework's request into a [Request] and calls [Guard.Admit]. The
// [Admission] has the decision: pass the request on untouched, write a [Response] (a
// replay and a refusal are the same to the adapter), or run the handler in an [Exchange].
// After the handler, the exchange keeps its response or releases the claim, and returns
// the reply to send.
//
// The client of a keyed request can rely on this: the handler runs once, and every retry
// gets the status, the kept fields and the body of that run. A malformed key is refused,
// never ignored. A key that comes back with a different request is refused. Without a
// definite result from the store no handler runs.
//
// It cannot undo an effect, and it cannot tell whether a handler that died had one; see
// [reprise.Preset].
//
// The rules have numbers, R1 to R52, which comments and tests cite;
// docs/engineering/protocol.md lists them for users. The package imports neither net/http
// nor any framework. Its proofs with real clients are in the lab: one module for each
// framework, and lab/edges.
package protocol
