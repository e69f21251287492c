// Package conformance has the types that the suites for stores and adapters share: a
// [Case], its [Need]s, and a [Waiver] for a case that a store or adapter is known to
// fail.
//
// The suites are its subpackages. Test a store with
// [github.com/reprise-go/reprise/conformance/storetest] and an adapter with
// [github.com/reprise-go/reprise/conformance/adaptertest]. The package
// [github.com/reprise-go/reprise/conformance/faultstore] injects faults into a store.
//
// The suites are tested too: for each of many stores and adapters that are broken on
// purpose, a named case fails.
//
// # Limits
//
// The suites run on a server that works. They do not test lost replies, server crashes or
// replication lag.
package conformance
