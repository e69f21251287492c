// Package batching sends concurrent calls to a server in batches. It is for implementers
// of stores: a store that sends the calls of many requests together spends less time on
// each. It is independent of any protocol: the store provides the function that sends a
// batch.
//
// # Behavior
//
// [Queue.Do] returns when its call has an answer or its context has ended. Calls that
// arrive while others are on their way queue, and the oldest go first. A batch takes a
// lane, of which a queue has a fixed number. No batch waits for others to join it, and an
// idle queue has no goroutine.
//
// A sender returns when every call of its batch has an answer, and its lane is busy for
// as long, up to [Config.Patience]. [Config.PerLane] opens another lane only where enough
// calls wait, and [Config.Yields] lets a batch grow.
//
// # Guarantees
//
//   - Every call ends exactly once: by [Sent.Finish], by the end of its context, or
//     by an [Error] that names the failure of the sender.
//   - A context ends its own call and no other. A call that was not sent yet is
//     withdrawn: its error has Sent false, and the sender never sees it. For a call that
//     was sent, Sent is true: it may or may not be executed. The sender continues for the
//     other calls of the batch, in a goroutine that belongs to none of them.
//   - If a sender panics, ends its goroutine or forgets a call, the unfinished calls of
//     that batch end with an [Error], and its lane becomes free.
//   - Calls are sent in the order in which they arrived, except for those that are
//     impatient. Those are sent alone, at once, outside of the lanes.
//
// The sender uses a call until it finishes it, even if the context of the call has ended.
// So the Value of a [Call] must not refer to memory that its caller reuses: copy payloads
// into memory of the Value, which the queue keeps for the next call.
//
//	queue := batching.New(batching.Config[query]{Send: send, Lanes: 4, PerLane: 8})
//
//	call := queue.Call()
//	defer call.Release()
//	call.Value.statement, call.Size = statement, len(statement)
//	if err := queue.Do(ctx, call); err != nil {
//		return err // a sender may still use call.Value
//	}
//	return call.Value.answer
package batching
