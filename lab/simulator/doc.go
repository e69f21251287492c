// Package simulator proves exclusion and equality while everything fails. It draws
// policies (every field of a guard, its engine and its store; another for requests of
// version 2; a guard inside the guard) and a schedule: duplicates, clients that retry, a
// network that is slow, loses requests and replies or delivers them late, a store that
// refuses, processes that crash, pause for longer than their leases or restart with
// another policy, and operators who resolve records. Several processes serve real HTTP
// handlers over one store in memory.
//
// A model of a few sentences judges each run of a handler, each response and each count:
//
//   - A handler runs for an operation only if, for each earlier run of it, a sentence of
//     mayRunAgain is true.
//   - A refusal is given only in the circumstances of mayAnswer.
//   - A replay is the response of one run of the same request, equal to it, and kept as
//     long as its policy says, and no longer.
//   - A run without a claim needs FailOpen and a store that could not be reached.
//   - A lease is lost, and a handler cancelled, for a reason only.
//   - Nothing is in progress once everything has ended, and no response of a sealed or
//     omitted kind is readable in the store.
//   - Each request has one counted outcome and each attempt one counted end.
//
// A pause stops a process, with one difference: a bubble cannot stop the timers of some
// goroutines, so the engine cancels its contexts in time, and not when it wakes up. The
// tests with stopped processes are in lab/faults.
//
// Time is that of a bubble, so no run waits. A seed fixes the draw and the jitter of the
// engines. It does not fix the order in which goroutines continue that one instant wakes:
// TestASeedFixesItsRun says how many runs differ when they are repeated.
//
// REPRISE_SEED is the first seed, REPRISE_RUNS how many runs there are, and REPRISE_SOAK
// for how long there are more. A failing run prints those that repeat it; a single run
// prints its schedule and its history.
package simulator
