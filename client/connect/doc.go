// Package repriseconnectclient is the client's end of the Idempotency-Key header in unary
// calls of Connect, over each of its protocols: it sends the same key with every attempt
// of a call, and retries until it has the result.
//
//	interceptor, err := repriseconnectclient.NewInterceptor(repriseconnectclient.Config{})
//	orders := ordersv1connect.NewOrdersClient(http.DefaultClient, url, connect.WithInterceptors(interceptor))
//	order, err := orders.Create(ctx, connect.NewRequest(request)) // is keyed, and retried
//
// The key is that of [repriseclient.WithKey], or of the header that the caller set, or a
// new random one. The rules are those of [repriseclient.Transport], for which each code
// stands for an HTTP status: docs/guides/rpc.md has the table. A call that ends without
// the operation's result ends with a [repriseclient.UnknownOutcomeError] or a
// [repriseclient.NotSentError]. Every error has a code of Connect as well.
//
// A key makes a retry safe only where the service honours it; Config.Skip leaves out the
// other procedures. Streaming calls, and calls of procedures that are declared to have no
// side effects (idempotency_level = NO_SIDE_EFFECTS), pass through untouched. Do not use
// an HTTP client that has a [repriseclient.Transport]: both would retry.
package repriseconnectclient
