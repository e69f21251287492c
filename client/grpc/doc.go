// Package reprisegrpcclient is the client's end of the Idempotency-Key header in unary
// calls of gRPC: it sends the same key with every attempt of a call, and retries until it
// has the result.
//
//	options, err := reprisegrpcclient.DialOptions(reprisegrpcclient.Config{})
//	conn, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(credentials.NewTLS(nil)))...)
//	orders := pb.NewOrdersClient(conn)
//	order, err := orders.Create(ctx, request) // is keyed, and retried
//
// The key is that of [repriseclient.WithKey], or of the metadata that the caller set, or
// a new random one. The rules are those of [repriseclient.Transport], for which each
// status code stands for an HTTP status: docs/guides/rpc.md has the table. A call that
// ends without the operation's result ends with a [repriseclient.UnknownOutcomeError] or
// a [repriseclient.NotSentError]. Every error has a status of gRPC as well.
//
// A key makes a retry safe only where the service honours it; Config.Skip leaves out the
// other procedures. Streaming calls, and calls of procedures that are declared to have no
// side effects (idempotency_level = NO_SIDE_EFFECTS), pass through untouched. The retries
// of a service config happen within one attempt, with the key of the call.
package reprisegrpcclient
