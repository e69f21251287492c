// Package simulation proves the engine in universes: processes over a memory store that
// pause and crash, a network that loses requests and replies or delivers them late, and
// clients that retry until they have their result. A violation prints the seed and the
// history of its key.
//
// A pause lasts longer than a lease. During a pause the process sends no request and
// reads no reply, its handlers neither continue nor notice that they were cancelled, and
// its clients get no response. One difference to a stopped process remains, because a
// bubble cannot stop the timers of some goroutines: the engine cancels its contexts in
// time, and not when it wakes up. This is invisible before. A handler that ignores its
// context acts as a process that wakes up and has not noticed. Tests with stopped
// processes are in lab/faults.
//
// A seed fixes the faults, the clients and the jitter of the engines. It does not fix
// which of the goroutines that one instant wakes runs first, as where several duplicates
// hear that the claim has failed which they waited for. So a few universes in a hundred
// go on otherwise when they are run again; TestASeedFixesItsUniverse allows a fifth.
// Under the race detector, which shuffles goroutines, it does not run.
package simulation
