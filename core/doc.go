// Package reprise runs an operation once and gives every retry the first result.
//
// An [Engine] decides over a [Store] that keeps the records. [Engine.Begin] claims an
// operation by its scope and key and answers with one [store.Outcome]: run it, replay it,
// come back later, or refuse it. The caller that runs it ends the [Attempt] with
// Complete, which keeps the result for every retry, or with Release, which lets the next
// request run.
//
// It guarantees that at any instant of the store's clock at most one owner holds an
// unexpired lease on an operation; that a completed operation is replayed from its
// record, byte for byte; that an owner that lost its lease can change no record; and that
// no operation runs without a definite result from the store.
//
// It does not guarantee that effects outside the store's own transaction happen exactly
// once, which is impossible. A process that dies between its effect and its completion
// leaves a lapsed record, and the [Preset] of the operation decides whether the next
// request runs it again ([Recoverable], the default) or is refused ([AtMostOnce]).
//
// The package knows no transport. In the same module, the package protocol serves the
// Idempotency-Key header with it, the package job runs any function once, and the package
// memstore is a store within one process. The adapters connect protocol to web
// frameworks.
package reprise
