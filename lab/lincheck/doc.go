// Package lincheck proves that every store, on every deployment of it that the project
// supports, is linearizable for each ID: its histories under concurrent clients, lost
// replies and cancelled calls are checked with porcupine against one sequential model.
//
// The rules of the model are those of the comments of reprise.Store. Time comes from
// outside of it: each operation carries two readings of the store's clock, one before its
// call and one after its answer, and a lease or a validity whose end lies between them
// may count as passed or not. The servers run on this machine, so that its clock is
// theirs.
package lincheck
