// Package repriseconnect serves the Idempotency-Key header in unary calls of Connect,
// over each of its protocols: Connect, gRPC and gRPC-Web.
//
//	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
//	path, handler := ordersv1connect.NewOrdersHandler(orders,
//		connect.WithInterceptors(authenticate, repriseconnect.NewInterceptor(guard, tenantOf)))
//
// The key is in the header of the call: Idempotency-Key, or the one that Config.Key
// names. With protocol.KeyField it is in a field of the message, such as the request_id
// of AIP-155. A retry with the same key, procedure and message gets the message or the
// error of the first call, with its details, header and trailer; the handler does not run
// again. The retry may use another protocol, codec or compression.
//
// Interceptors that authenticate or limit rates belong before this one. The handler runs
// once for each key. Neither a client that disconnects nor the timeout of the call
// cancels the context of a run; reprise.Config.MaxRun bounds it. An interceptor before
// this one sees the message of a replay as a *dynamicpb.Message, and so does a codec.
//
// Calls by GET, procedures that are declared to have no side effects (idempotency_level =
// NO_SIDE_EFFECTS) and streaming calls pass through. See docs/guides/rpc.md for the
// codes. The tests with real clients are in lab/edges.
//
// The middleware of package reprisehttp can protect the same handlers instead, where one
// HTTP request is one call. It also protects server streams, but a retry must then use
// the same protocol and have the same bytes.
package repriseconnect
