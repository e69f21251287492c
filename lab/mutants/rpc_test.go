package mutants

// The interceptors for gRPC and Connect, and what they share.
func init() {
	const (
		protocolRoom = "core/protocol"
		callFile     = protocolRoom + "/call.go"
		resultFile   = protocolRoom + "/callresult.go"
		grpcRoom     = "adapters/grpc"
		connectRoom  = "adapters/connect"
		room         = "lab/rpc"
		rules        = "TestRules/" // then the client and the server, and the case
	)
	mutants = append(mutants, []mutant{
		{
			"the trailer of a replay is lost over gRPC", grpcRoom + "/message.go",
			"_ = grpc.SetTrailer(ctx, pairs(r.Trailer))", "_ = pairs",
			room, rules + "grpc-go/R17-trailer",
		},
		{
			"the trailer of a replay is lost over Connect", connectRoom + "/message.go",
			"\tset(res.Trailer(), r.Trailer)\n", "",
			room, rules + "Connect_over_HTTP_1.1/R17-trailer",
		},
		{
			"the trailer of a first run is lost", grpcRoom + "/run.go",
			"_ = grpc.SetTrailer(ctx, trailer)", "_ = trailer",
			room, rules + "grpc-go/R17-trailer",
		},
		{
			"binary metadata is kept as it is", grpcRoom + "/message.go",
			"value = base64.RawStdEncoding.EncodeToString([]byte(value))", "value += \"\"; _ = base64.RawStdEncoding",
			room, rules + "grpc-go/R13-metadata",
		},
		{
			"details are lost", resultFile,
			"appendStatus(nil, code, r.Message, r.Details)", "appendStatus(nil, code, r.Message, nil)",
			room, rules + "grpc-go/R31-details",
		},
		{
			"details are lost over Connect", connectRoom + "/message.go",
			"failed.AddDetail(detail)", "_ = detail",
			room, rules + "gRPC-Web_over_HTTP_1.1/R31-details",
		},
		{
			"the metadata of an error is lost over Connect", connectRoom + "/run.go",
			"trailer = merge(trailer, metaOf(failed))", "_ = metaOf",
			room, rules + "Connect_over_HTTP_1.1/R31-details",
		},
		{
			"a message is replayed under another method", callFile,
			"Path: c.Procedure,", "Path: \"/\",",
			room, rules + "grpc-go/R22-method",
		},
		{
			"the codec makes another call", callFile,
			`m.all == nil || strings.EqualFold(name, "Content-Type")`, `m.all == nil || false`,
			room, "TestOneCallOverAllProtocols",
		},
		{
			"the order of a map makes another call", grpcRoom + "/message.go",
			"proto.MarshalOptions{Deterministic: true}", "proto.MarshalOptions{}",
			room, rules + "grpc-go/R25-metadata",
		},
		{
			"the run is cancelled with its client", grpcRoom + "/run.go",
			"grpc.NewContextWithServerTransportStream(x.Context(), r)", "grpc.NewContextWithServerTransportStream(ctx, r)",
			room, rules + "grpc-go/R23-cancelled",
		},
		{
			"the run is cancelled with its client over Connect", connectRoom + "/run.go",
			"next(x.Context(), req)", "next(ctx, req)",
			room, rules + "Connect_over_HTTP_1.1/R23-cancelled",
		},
		{
			"a handler marks its own message", grpcRoom + "/run.go",
			"return protocol.IsControlField(name)", "return false",
			room, rules + "grpc-go/R11-marks",
		},
		{
			"the header of a run that lost stays", connectRoom + "/run.go",
			"\t\touter.restore()\n", "",
			room, rules + "Connect_over_HTTP_1.1/G3-superseded",
		},
		{
			"a panic keeps the key", grpcRoom + "/run.go",
			"\t\t\tx.AbandonCall(false)\n", "",
			room, rules + "grpc-go/R33-panic",
		},
		{
			"what cannot be encoded counts as a message", connectRoom + "/run.go",
			"reply = x.AbandonCall(true)", "reply = x.FinishCall(protocol.CallResult{})",
			room, rules + "Connect_over_HTTP_1.1/R33-encoding",
		},
		{
			"reads need a key", grpcRoom + "/interceptor.go",
			"encode(req) }, Safe: safe.has(info.FullMethod)", "encode(req) }, Safe: safe == nil",
			room, rules + "grpc-go/R10-required",
		},
		{
			"a key on a stream goes unnoticed", grpcRoom + "/interceptor.go",
			"if mark.Name != \"\" {", "if false {",
			room, rules + "grpc-go/R34-stream",
		},
		{
			"a refusal does not say when to retry", resultFile,
			"r.Details = append(r.Details, retryInfo(p.RetryAfter))", "_ = retryInfo",
			room, rules + "grpc-go/R40-store",
		},
	}...)
}
