// Package combinations proves that the features keep their promises together. It draws
// policies (every field of a guard, its engine and its store; a second policy that Select
// chooses; a guard inside the guard; layers outside that read, bind, decode, limit,
// compress or time out), faults of the store, and a schedule of duplicates, crashes,
// restarts with another policy, and operators. A model of a few sentences judges each run
// of a handler and each response: see mayRunAgain and the tables beside it.
//
// Time is that of a bubble, so no draw waits. A seed fixes its draw; the jitter of the
// engines, and the order in which one instant wakes goroutines, remain.
//
// The test draws 10,000, the same in every run. With the flag -draws it draws as many as
// that says, new ones each time, and with -seed the one of that seed, whose schedule and
// history it prints.
package combinations
