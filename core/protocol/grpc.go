package protocol

import "strconv"

// grpcStatuses maps the codes of gRPC to the HTTP statuses with the same meaning, as the
// Connect protocol and gRPC's own gateways do.
var grpcStatuses = [...]int{
	0:  200, // OK
	1:  499, // CANCELLED
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

// meaning returns the status by which a response is kept or released: its own, or the one
// that its Grpc-Status stands for, because every response of gRPC has the status 200.
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
