// Package reprise runs an operation once and gives every retry the first answer.
//
// An [Engine] decides, over a [Store] that keeps the records: [Engine.Begin] claims an operation by its scope and key and answers
// with one [Outcome]: run it, replay it, wait for it, or refuse it. Whoever runs it ends the [Attempt] by Complete, which
// keeps the answer for every retry, or by Release, which lets the next request run.
//
// What it guarantees: at any instant of the store's clock at most one owner holds an unexpired lease on an operation; a
// completed operation is answered from its record, byte for byte; an owner that lost its lease can change
// nothing; and without a definite answer from the store nothing runs.
//
// What it does not: effects outside the store's own transaction cannot be made to happen exactly once by anybody. A
// process that dies between its effect and its completion leaves a lapsed record, and the [Preset] of the operation says
// whether the next request runs it again ([Recoverable], the default) or is refused ([AtMostOnce]).
//
// The package knows nothing of HTTP. The package protocol, in the same module, serves the Idempotency-Key header with it, the adapters
// fit that to web frameworks, and the package memstore is a store within one process.
package reprise
