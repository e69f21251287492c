// Package repriseredis keeps idempotency records in Redis: a single server, Sentinel or
// Cluster, version 7.0 or newer, and Valkey.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	store, err := repriseredis.Open(ctx, client, repriseredis.Config{})
//	engine, err := reprise.New(store, reprise.Config{})
//
// Every operation is one script that runs atomically on the server, by the server's
// clock, and costs one round trip: a new key costs two commands (claim and complete), a
// replay one, and a replay writes nothing.
//
// # What it guarantees
//
// As long as the server keeps what it acknowledged, every guarantee of the package
// reprise holds, over any number of processes. Redis by default acknowledges before a
// replica has a write and before it is on disk: a failover or a crash may lose the last
// claims and completions, and what they protected then runs again. [Durability] says how
// much a write has to survive before it counts; [Acked] closes the failover case at the
// price of one replica round trip. Effects outside of Redis are never part of the record:
// see the guarantees of the package reprise.
//
// A server that evicts keys breaks exclusion silently. [Store.Check] reports that and
// what else is wrong with a server; [Open] refuses to start on one that cannot hold the
// guarantees.
//
// # Retries
//
// The store switches off the client's own retries for its commands and repeats them
// itself, because it has to know whether an earlier attempt may have been executed: that
// is the difference between [reprise.ErrUnavailable] and [reprise.ErrUnknown].
package repriseredis
