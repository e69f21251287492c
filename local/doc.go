// Package repriselocal answers hot replays from the memory of the process: a decorator
// for any [reprise.Store] that keeps completed records in a bounded cache.
//
//	store, err := repriselocal.New(redisStore, repriselocal.Config{})
//	engine, err := reprise.New(store, reprise.Config{})
//
// A completed record does not change, so one that this process replays for the third time
// needs no round trip, and neither does a different request with its key. Everything else
// goes to the store, which decides as before: exclusion, fencing and retention are its
// own. A new key and a first replay cost what they cost without the cache.
//
// # What holds
//
// An answer from the cache is one that the store gave, byte for byte, and for the same
// fingerprint. No entry outlives its record: its life counts from before the call that
// was answered, by the monotonic clock or by the wall clock, whichever says that more
// time has passed, so that a machine which sleeps does not prolong it.
//
// # What does not
//
// What somebody does to a completed record behind the back of this process, such as
// deleting its key in Redis by hand, has no effect here before the entry ends, which is
// Config.MaxAge at most. The same is true of a record that the server lost in a failover:
// this process goes on replaying what happened, while another may claim the key anew. A
// resolution by an operator through the store that [New] returned has an effect at once.
//
// A policy that fails open ([reprise.Operation].FailOpen) replays what is in the cache
// while the store is away, and does not run it.
//
// Nothing runs in the background, and there is nothing to close. The suite of stores runs
// over it in lab/local.
package repriselocal
