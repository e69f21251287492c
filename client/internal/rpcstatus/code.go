package rpcstatus

import (
	"net/http"
	"slices"
)

// names are the names of Connect for the status codes of gRPC, by their numbers.
var names = []string{
	"", "canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied", "resource_exhausted",
	"failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss", "unauthenticated",
}

// CodeOf returns the status code with a name of Connect, and false for other names.
func CodeOf(name string) (uint32, bool) {
	code := slices.Index(names, name)
	return uint32(max(code, 0)), code > 0 //nolint:gosec // at most 16
}

// The codes that are not refusals by the service.
const (
	ok                = 0
	canceled          = 1
	unknown           = 2
	deadlineExceeded  = 4
	resourceExhausted = 8
	aborted           = 10
	internal          = 13
	unavailable       = 14
	dataLoss          = 15
)

// HTTP returns the HTTP status that a status code stands for, as far as a transport
// distinguishes them. wait says that the service asks for one. ABORTED asks to repeat a
// whole operation, and a call with a key is a whole one. RESOURCE_EXHAUSTED is also the
// code for a message that is too large, so it is a rate limit only with a wait.
func HTTP(code uint32, wait bool) int {
	switch code {
	case ok:
		return http.StatusOK
	case canceled, aborted, unavailable:
		return http.StatusServiceUnavailable
	case deadlineExceeded:
		return http.StatusGatewayTimeout
	case unknown, internal, dataLoss:
		return http.StatusInternalServerError
	case resourceExhausted:
		if wait {
			return http.StatusTooManyRequests
		}
	}
	return http.StatusBadRequest
}
