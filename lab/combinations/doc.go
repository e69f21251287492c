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
//	go test ./combinations                      10,000 draws
//	go test ./combinations -draws 1000000       more of them
//	go test ./combinations -seed 4711 -v        one of them, with its schedule and its history
package combinations
