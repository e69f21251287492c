// Package mysql has the proofs of store/mysql that need a driver and a server: the
// suites, the traps of the server, and kills.
package mysql
