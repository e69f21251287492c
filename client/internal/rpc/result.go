package rpc

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	repriseclient "github.com/reprise-go/reprise/client"
)

// Result is the result of an attempt.
type Result struct {
	Err      error
	Code     uint32      // of gRPC: 0 is OK
	Metadata http.Header // header and trailer; empty if there was no response
	Details  []Detail    // of the error
}

// The codes of gRPC that say more than that the service refuses the call.
const (
	cancelled         = 1
	unknown           = 2
	deadlineExceeded  = 4
	resourceExhausted = 8
	aborted           = 10
	internal          = 13
	unavailable       = 14
	dataLoss          = 15
)

// response returns the response of HTTP that the result stands for, or its error if the
// service did not respond.
func (r *Result) response(req *http.Request) (*http.Response, error) {
	refusal := RefusalOf(r.Details)
	resp := &http.Response{StatusCode: r.status(refusal), Header: r.Metadata.Clone(), Body: http.NoBody, Request: req}
	if resp.StatusCode >= 503 && len(r.Metadata) == 0 {
		return nil, r.Err
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	resp.Header.Del("Content-Type")
	if wait := r.wait(refusal); wait > 0 && resp.Header.Get("Retry-After") == "" {
		resp.Header.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	if refusal.Code != "" {
		body, err := json.Marshal(map[string]any{"code": refusal.Code, "retryable": refusal.Retryable})
		if err != nil {
			return nil, err
		}
		resp.Header.Set("Content-Type", "application/problem+json")
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	return resp, nil
}

// status returns the HTTP status that the code stands for, as far as a transport
// distinguishes them. Libraries use RESOURCE_EXHAUSTED for messages that are too large,
// so it is a limit of rates only with the time to come back.
func (r *Result) status(refusal repriseclient.Problem) int {
	switch r.Code {
	case 0:
		return http.StatusOK
	case cancelled, unavailable:
		return http.StatusServiceUnavailable
	case deadlineExceeded:
		return http.StatusGatewayTimeout
	case unknown, internal, dataLoss:
		return http.StatusInternalServerError
	case aborted:
		return http.StatusConflict
	case resourceExhausted:
		if r.wait(refusal) > 0 || r.Metadata.Get("Retry-After") != "" {
			return http.StatusTooManyRequests
		}
	}
	return http.StatusBadRequest
}

// wait returns how long the service asks to wait, besides Retry-After.
func (r *Result) wait(refusal repriseclient.Problem) time.Duration {
	if refusal.RetryAfter > 0 {
		return refusal.RetryAfter
	}
	pushback, _ := strconv.ParseUint(r.Metadata.Get("Grpc-Retry-Pushback-Ms"), 10, 31)
	return time.Duration(pushback) * time.Millisecond //nolint:gosec // 31 bits
}
