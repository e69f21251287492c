// Package pipeline sends the calls of concurrent requests together: to each Redis server
// on its own connection, in batches that wait neither for a timer nor for the replies to
// the ones before. ADR 10 has the reasons and the measurements.
//
//	pipelines := pipeline.New(client)
//	defer pipelines.Close()
//	answer, pipelined, err := pipelines.Do(ctx, node, call, throughTheClient)
//
// # Limits
//
// A pipeline takes calls of up to [MaxPayload] bytes whose replies have at most
// [MaxReply], because all calls share the connection and a larger one would hold up the
// others. It follows no redirect, repeats no call, and interprets no error: the caller
// repeats each call that failed, through the client.
//
// # Exit
//
// The client has an automatic pipeline too, experimental since go-redis 9.22. Delete this
// package once that pipeline is stable in the oldest go-redis that the store requires,
// and at most 20 percent slower than this one at 64 connections. ADR 10 has all
// conditions, and lists the parts that go and those that stay.
package pipeline
