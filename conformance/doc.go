// Package conformance names what the suites for stores and adapters have in common: a
// [Case], what it [Need]s, and the [Waiver] of a subject that is known to break one.
//
// The suites are its subpackages. Someone who writes a store proves it with
// [github.com/reprise-go/reprise/conformance/storetest], someone who writes an adapter
// with [github.com/reprise-go/reprise/conformance/adaptertest]. Faults on purpose come
// from [github.com/reprise-go/reprise/conformance/faultstore].
//
// The suites are themselves tested against stores and adapters that are wrong on purpose,
// each of which a named case rejects.
//
// # What it does not show
//
// The suites run on a server that works. What a store does when replies are lost, servers
// die or replicas lag is tested with faults, in a module that has the servers.
package conformance
