package repriseclient

import (
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/client/internal/rpcstatus"
)

// rpcStatus is the result of a unary call of gRPC or Connect that a response carries.
type rpcStatus struct {
	http int // the status that it stands for
	rpcstatus.Refusal
}

// rpcStatusOf returns the status of a response to a call of gRPC, or to one of Connect
// that failed. It returns false for other responses, and where the status is not read
// yet: that of gRPC is in the trailer, behind a body that may be streamed. (gRPC-Web has
// its status in the body, and is not understood.)
func rpcStatusOf(req *http.Request, resp *http.Response) (rpcStatus, bool) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case media == "application/grpc" || strings.HasPrefix(media, "application/grpc+"):
		return grpcStatusOf(resp)
	case resp.StatusCode != http.StatusOK && media == "application/json" && req.Header.Get("Connect-Protocol-Version") != "":
		return connectStatusOf(resp)
	}
	return rpcStatus{}, false
}

func grpcStatusOf(resp *http.Response) (rpcStatus, bool) {
	fields := resp.Trailer
	if resp.Header.Get("Grpc-Status") != "" { // a response without a message
		fields = resp.Header
	}
	code, err := strconv.ParseUint(fields.Get("Grpc-Status"), 10, 32)
	if err != nil {
		return rpcStatus{}, false
	}
	return statusOf(resp, uint32(code), rpcstatus.DetailsOf(unbase64(fields.Get("Grpc-Status-Details-Bin")))), true
}

func connectStatusOf(resp *http.Response) (rpcStatus, bool) {
	var failure struct {
		Code    string `json:"code"`
		Details []struct {
			Type  string `json:"type"`
			Value string `json:"value"`
		} `json:"details"`
	}
	head, ok := peek(resp, maxProblem)
	if !ok || json.Unmarshal(head, &failure) != nil {
		return rpcStatus{}, false
	}
	code, ok := rpcstatus.CodeOf(failure.Code)
	if !ok {
		return rpcStatus{}, false
	}
	details := make([]rpcstatus.Detail, len(failure.Details))
	for i, d := range failure.Details {
		details[i] = rpcstatus.Detail{Type: d.Type, Value: unbase64(d.Value)}
	}
	return statusOf(resp, code, details), true
}

func statusOf(resp *http.Response, code uint32, details []rpcstatus.Detail) rpcStatus {
	refusal := rpcstatus.RefusalOf(details)
	_, waits := retryAfter(resp.Header, time.Now())
	return rpcStatus{rpcstatus.HTTP(code, waits || refusal.Retry), refusal}
}

// unbase64 reads base64 with or without padding; nothing stands for anything else.
func unbase64(text string) []byte {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil
	}
	return b
}
