// Package lincheck proves that every store, on every deployment of it that the project
// supports, is linearizable for each ID: its histories under concurrent clients, lost
// replies and cancelled calls are checked with porcupine against one sequential model.
//
// The rules of the model are those of the comments of reprise.Store, in a step of about
// fifty lines, record.apply. The code around it is the freedom of a history: unknown
// outcomes, which may have taken place or not, and the clock.
//
// # Time
//
// The servers run on this machine, so that its clock is theirs, and each operation has
// the time of its call and of its result. The store's answers say more:
//
//   - The fence of a new claim is its instant, to the microsecond on PostgreSQL and to
//     the millisecond on Redis. So the end of its lease is known, and that a takeover did
//     not come before it. A fence that is not of the time of its call is an error.
//   - Remaining, of a claim that found an attempt in progress or its own lapsed one, says
//     when the lease ends.
//
// Renewals and completions answer no instant, and fences of the memory store only count.
// There a lease or a validity counts from some time between call and answer, until a
// later result says more. An end that lies in doubt may count as passed or not; so may
// one within two milliseconds on Redis, which reads its clock before it serves a command.
// A lease that ends 2 ms early on PostgreSQL is found, and one that ends 4 ms early on
// Redis.
//
// # Calls that are executed twice
//
// A claim whose result takes longer than its lease may be executed twice: Redis asks
// again, and PostgreSQL sets the lease again. Both executions are in the history.
package lincheck
