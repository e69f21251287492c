// Package repriseetcd keeps idempotency records in etcd 3.4 or newer. It is for
// operations that must not run twice even if a server is lost.
//
//	store, err := repriseetcd.Open(ctx, client, repriseetcd.Config{Prefix: "orders/"})
//
// Every answer is linearizable, and every write is on the disks of a majority of the
// members before it counts. If a minority is lost, no claim and no result is; without a
// majority, no operation begins. That costs two Raft writes for each new key. A replay is
// a linearizable read while replays are common, and else an entry in the Raft log.
//
// Leases of etcd are the clock of the store: the server deletes what has ended. They
// count in seconds and never end early, so a lease or a retention ends late: by two
// seconds, or by a sixtieth of its length, up to a minute, if that is longer. After a
// change of the leader it ends later still.
package repriseetcd
