package protocol

import "strconv"

// grpcStatuses maps the codes of gRPC to the HTTP statuses with the same meaning, as the
// Connect protocol and gRPC's own gateways do, except for CANCELLED: a client that
// cancels does not cancel a run, so a handler that returns it was stopped by the server,
// and did not finish. As 499 it would be kept.
var grpcStatuses = [...]int{
	0:  200, // OK
	1:  503, // CANCELLED
	2:  500, // UNKNOWN
	3:  400, // INVALID_ARGUMENT
	4:  504, // DEADLINE_EXCEEDED
	5:  404, // NOT_FOUND
	6:  409, // ALREADY_EXISTS
	7:  403, // PERMISSION_DENIED
	8:  429, // RESOURCE_EXHAUSTED
	9:  400, // FAILED_PRECONDITION
	10: 409, // ABORTED
	11: 400, // OUT_OF_RANGE
	12: 501, // UNIMPLEMENTED
	13: 500, // INTERNAL
	14: 503, // UNAVAILABLE
	15: 500, // DATA_LOSS
	16: 401, // UNAUTHENTICATED
}

// The codes of gRPC that problems have. None is ALREADY_EXISTS, because programs take
// that for success, and only a problem that may pass with the same key is ABORTED or
// UNAVAILABLE, which programs retry.
const (
	grpcUnknown            = 2
	grpcInvalidArgument    = 3
	grpcPermissionDenied   = 7
	grpcResourceExhausted  = 8 // as for gRPC's own limits
	grpcFailedPrecondition = 9
	grpcAborted            = 10
	grpcInternal           = 13
	grpcUnavailable        = 14
	grpcDataLoss           = 15
)

// grpcCode returns code, and UNKNOWN for one that gRPC does not have.
func grpcCode(code uint32) uint32 {
	if code < uint32(len(grpcStatuses)) {
		return code
	}
	return grpcUnknown
}

// codeOfStatus returns the code of gRPC for the status of a response that no call made.
func codeOfStatus(status int) uint32 {
	switch status {
	case 409, 412, 422:
		return grpcFailedPrecondition
	case 500:
		return grpcInternal
	case 502, 503:
		return grpcUnavailable
	}
	for code, stands := range grpcStatuses {
		if stands == status && code != 0 {
			return uint32(code)
		}
	}
	return grpcUnknown
}

// meaning returns the status by which a response is kept or released: its own, or the one
// of its Grpc-Status, because every response of gRPC has the status 200.
func (x *Exchange) meaning(status int) int {
	lines := group(x.scratch.trailers, "Grpc-Status")
	if lines == nil {
		lines = group(x.scratch.committed, "Grpc-Status")
	}
	if lines == nil || status != 200 {
		return status
	}
	code, err := strconv.Atoi(lines[0].Value)
	switch {
	case err != nil || code < 0 || code >= len(grpcStatuses):
		return 500
	case code == 0:
		return status
	default:
		return grpcStatuses[code]
	}
}
