// Package job runs any function once: the work for the message of a queue, a scheduled
// job, a command. Requests with an Idempotency-Key are for the package protocol instead.
//
// [Do] runs a function for an operation, keeps its result in the record of the operation,
// and gives that result to every later call. A [Codec] turns the result into bytes, JSON
// by default. [Keep], [Retry] and [Unknown] say how an error of the function counts, and
// [SettlementOf] says from the error of Do whether to acknowledge the message, have it
// delivered again, or park it:
//
//	done, err := job.Do(ctx, engine, reprise.Operation{
//		Scope: "payments", Key: message.ID, Fingerprint: store.FingerprintOf(message.Body),
//	}, nil, func(ctx context.Context) (Receipt, error) { return book(ctx, message) })
//	switch action, delay := job.SettlementOf(err); action {
//	case job.Ack:
//		message.Ack()
//	case job.Nack:
//		message.Nack(delay)
//	case job.Park:
//		deadLetters.Publish(message, err)
//	}
//
// The engine, its stores and its guarantees are those of package reprise: an effect
// happens exactly once where the function writes it in the transaction of a transactional
// store. Elsewhere a process that dies between its effect and its record leaves a lapsed
// record, about which the preset of the operation decides.
package job
