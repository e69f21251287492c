// Package reprisegrpc serves the Idempotency-Key header in unary calls of gRPC.
//
//	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(authenticate, reprisegrpc.UnaryServerInterceptor(guard, tenantOf)),
//		grpc.StreamInterceptor(reprisegrpc.StreamServerInterceptor(guard)),
//	)
//
// The key is in the metadata of the call: idempotency-key, or the one that Config.Key
// names. With protocol.KeyField it is in a field of the message, such as the request_id
// of AIP-155. A retry with the same key, procedure and message gets the message or the
// status of the first call, with its details, header and trailer; the handler does not
// run again.
//
// Interceptors that authenticate, limit rates or recover from panics belong before this
// one. The handler runs once for each key. Neither a client that disconnects nor the
// deadline of the call cancels the context of a run; reprise.Config.MaxRun bounds it. The
// header leaves with the response, even if the handler calls grpc.SendHeader.
// grpc.SetSendCompressor works only in interceptors before this one.
//
// Procedures that are declared to have no side effects (idempotency_level =
// NO_SIDE_EFFECTS), health checks, reflection, channelz and streaming calls pass through.
// See docs/guides/rpc.md for the status codes. The tests with real clients are in
// lab/edges.
package reprisegrpc
