// Package repriseredis keeps idempotency records in Redis: a single server, Sentinel or
// Cluster, version 7.0 or newer, and Valkey.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	store, err := repriseredis.Open(ctx, client, repriseredis.Config{Prefix: "orders:"})
//	guard, err := protocol.New(store, protocol.Config{Required: true})
//
// Every operation takes effect atomically on the server, by the server's clock. A claim
// is two native commands in one write, a completion one script: a new key costs two round
// trips, a replay one, and a replay does not write. A claim that finds a record in
// progress needs a script, and so a second round trip. So does a replay where the policy
// has a horizon, because the payload then has a separate key, which expires when the
// retention ends.
//
// # Guarantees
//
// As long as the server keeps the writes that it acknowledged, every guarantee of the
// package reprise holds, over any number of processes. By default, Redis acknowledges a
// write before a replica has it and before it is on disk: a failover or a crash may lose
// the last claims and completions, and the operations that they protected then run again.
// [Durability] says how much a write must survive before it counts: with [Acked], a
// failover to a replica that confirmed the write keeps its record, at the price of one
// more round trip for each new key. Effects outside of Redis are never part of the
// record: see the guarantees of the package reprise.
//
// A server that evicts keys breaks exclusion silently. [Store.Check] reports this and
// other problems of a server; [Open] refuses one on which the guarantees cannot hold.
//
// # Retries
//
// The store disables the client's own retries for its commands and repeats them itself,
// because it has to know whether an earlier attempt may have been executed: that is the
// difference between [store.ErrUnavailable] and [store.ErrUnknown].
package repriseredis
