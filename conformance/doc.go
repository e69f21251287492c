// Package conformance holds the suites that a store and an adapter have to pass.
//
// Whoever writes a [reprise.Store] proves it by a test of a few lines:
//
//	func TestStore(t *testing.T) {
//		conformance.RunStore(t, func(tb testing.TB) conformance.StoreFixture {
//			server := startServer(tb) // or a shared one, with a key prefix or schema for this fixture alone
//			return conformance.StoreFixture{
//				Open:    func(tb testing.TB) reprise.Store { return mystore.New(server.Dial(tb)) },
//				Advance: conformance.Sleep,
//			}
//		})
//	}
//
// Each [Case] is a subtest named by its ID, with a fixture of its own, in parallel with the others. A case that fails prints
// the promise that was broken and where it is made. What a store lacks, such as an optional ability, is skipped with the
// reason; what it is known not to keep is declared by a [Waiver], which has to go once the case passes.
//
// Whoever writes an adapter for a framework serves the handlers of the test server natively, as [AdapterFixture] says, and runs
// [RunAdapter] over each store. Its cases talk to a real listener, by the client of net/http or, where that would refuse or
// normalise the bytes, by a socket; they are named after the rules in docs/protocol.md.
//
// The suites themselves are tested against the stores and adapters of the package broken, each of which a named case rejects.
//
// # What it does not show
//
// The suite runs on a server that works. What a store does when replies are lost, servers die or replicas lag is
// tested with faults, in the modules that have the servers; so are recorded histories, by a linearizability checker.
package conformance
