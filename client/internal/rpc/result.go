package rpc

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/reprise-go/reprise/client/internal/rpcstatus"
)

// Result is the result of an attempt.
type Result struct {
	Err      error
	Code     uint32             // of gRPC: 0 is OK
	Metadata http.Header        // header and trailer; empty if there was no response
	Broken   bool               // Err is that of a response that broke off
	Details  []rpcstatus.Detail // of the error
}

// response returns the response of HTTP that the result stands for, or its error if the
// service did not respond.
func (r *Result) response(req *http.Request) (*http.Response, error) {
	refusal := rpcstatus.RefusalOf(r.Details)
	wait := max(refusal.RetryAfter, r.pushback())
	status := rpcstatus.HTTP(r.Code, refusal.Retry || wait > 0 || r.Metadata.Get("Retry-After") != "")
	switch {
	case r.Broken:
		return nil, r.Err
	case r.Err == nil || len(r.Metadata) > 0:
	case status < http.StatusServiceUnavailable:
		return nil, &localError{r.Err}
	default:
		return nil, r.Err
	}
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}
	for name, values := range r.Metadata {
		if name != "Content-Type" {
			resp.Header[name] = values
		}
	}
	if wait > 0 && resp.Header.Get("Retry-After") == "" {
		resp.Header.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	if refusal.Code != "" {
		body, err := json.Marshal(map[string]any{"code": refusal.Code, "retryable": refusal.Retry})
		if err != nil {
			return nil, err
		}
		resp.Header.Set("Content-Type", "application/problem+json")
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	return resp, nil
}

// localError is an error of the library that a retry would meet again, such as one of its
// credentials or its codec. The outcome is unknown if the attempt was sent before.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

// pushback returns how long the service asks the retries of gRPC to wait.
func (r *Result) pushback() time.Duration {
	ms, _ := strconv.ParseUint(r.Metadata.Get("Grpc-Retry-Pushback-Ms"), 10, 31)
	return time.Duration(ms) * time.Millisecond
}
