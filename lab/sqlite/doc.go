// Package sqlite has the proofs of store/sqlite that need a driver: the suites on two of
// them, kills, power failures and full disks.
package sqlite
