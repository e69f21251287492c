// Package repriseetcd keeps idempotency records in etcd 3.4 or newer, for operations that
// must not run twice because a server was lost.
//
//	store, err := repriseetcd.Open(ctx, client, repriseetcd.Config{})
//
// Every answer is linearizable, and every write is on the disks of a majority of the
// members before it counts. The loss of a minority loses no claim and no result, and
// without a majority no operation begins. That costs two Raft writes for each new key,
// and a log entry for each replay.
//
// Leases of etcd are the clock of the store: the server deletes what has ended. They
// count in seconds and never end early, so a lease or a retention ends a few seconds late
// (two, or a sixtieth of it up to a minute, whichever is longer), and later after a
// change of the leader.
package repriseetcd
