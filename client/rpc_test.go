package repriseclient

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// field is one of an encoded protocol buffer: a text or a message.
type field struct {
	number int
	text   string
}

// message encodes fields.
func message(fields ...field) string {
	var b []byte
	for _, f := range fields {
		b = binary.AppendUvarint(b, uint64(f.number<<3|2))
		b = binary.AppendUvarint(b, uint64(len(f.text)))
		b = append(b, f.text...)
	}
	return string(b)
}

var (
	ours      = "github.com/reprise-go/reprise"
	reason    = func(code, domain string) string { return message(field{1, code}, field{2, domain}) }
	threeSecs = message(field{1, "\x08\x03"}) // of a RetryInfo
)

// grpcResponse is a response of gRPC, with the status in the trailer or, without a
// message, in the header.
func grpcResponse(trailer bool, code int, details ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		resp := response(200, "", "Content-Type", "application/grpc+proto")
		fields := http.Header{"Grpc-Status": {strconv.Itoa(code)}}
		if len(details) > 0 {
			status := []field{{2, "a message"}}
			for pair := range slices.Chunk(details, 2) {
				status = append(status, field{3, message(field{1, "type.googleapis.com/" + pair[0]}, field{2, pair[1]})})
			}
			fields.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString([]byte(message(status...))))
		}
		if trailer {
			resp.Trailer = fields
		} else {
			maps.Copy(resp.Header, fields)
		}
		return resp, nil
	}
}

// connectResponse is a failure of Connect. Details are pairs of type and value.
func connectResponse(status int, code string, details ...string) func() (*http.Response, error) {
	var list []string
	for pair := range slices.Chunk(details, 2) {
		list = append(list, `{"type":"`+pair[0]+`","value":"`+base64.RawStdEncoding.EncodeToString([]byte(pair[1]))+`"}`)
	}
	return body(status, `{"code":"`+code+`","details":[`+strings.Join(list, ",")+`]}`, "Content-Type", "application/json")
}

func TestFailuresOfRPCAreRetriedByTheirStatus(t *testing.T) {
	t.Parallel()
	const info, retry = "google.rpc.ErrorInfo", "google.rpc.RetryInfo"
	for name, test := range map[string]struct {
		config Config
		answer func() (*http.Response, error)
		retry  bool
		code   Code
		after  time.Duration
		http   bool // not a call of Connect
	}{
		"gRPC OK":                      {answer: grpcResponse(true, 0)},
		"gRPC UNAVAILABLE":             {answer: grpcResponse(true, 14), retry: true},
		"gRPC UNAVAILABLE, in header":  {answer: grpcResponse(false, 14), retry: true},
		"gRPC ABORTED":                 {answer: grpcResponse(true, 10), retry: true},
		"gRPC DEADLINE_EXCEEDED":       {answer: grpcResponse(true, 4), retry: true},
		"gRPC RESOURCE_EXHAUSTED":      {answer: grpcResponse(true, 8)},
		"gRPC RESOURCE_EXHAUSTED, 3 s": {answer: grpcResponse(true, 8, retry, threeSecs), retry: true, after: 3 * time.Second},
		"gRPC INTERNAL":                {answer: grpcResponse(true, 13)},
		"gRPC INTERNAL, if asked":      {config: Config{RetryServerErrors: true}, answer: grpcResponse(true, 13), retry: true},
		"gRPC INVALID_ARGUMENT":        {answer: grpcResponse(true, 3)},
		"gRPC, another number":         {answer: grpcResponse(true, 99)},
		"gRPC, no status":              {answer: body(200, "", "Content-Type", "application/grpc")},
		"gRPC in-progress": {
			answer: grpcResponse(true, 10, info, reason("IN_PROGRESS", ours), retry, threeSecs), retry: true, code: CodeInProgress, after: 3 * time.Second,
		},
		"gRPC key-reused":               {answer: grpcResponse(false, 9, info, reason("KEY_REUSED", ours)), code: CodeKeyReused},
		"gRPC request-too-large":        {answer: grpcResponse(true, 8, info, reason("REQUEST_TOO_LARGE", ours), retry, threeSecs), code: CodeRequestTooLarge},
		"gRPC, a reason of others":      {answer: grpcResponse(true, 14, info, reason("KEY_REUSED", "example.org")), retry: true},
		"gRPC, a reason of tomorrow":    {answer: grpcResponse(true, 9, info, reason("NEW", ours))},
		"gRPC, no RPC of that name":     {answer: grpcResponse(true, 12)},
		"Connect aborted":               {answer: connectResponse(409, "aborted"), retry: true},
		"Connect unavailable":           {answer: connectResponse(503, "unavailable"), retry: true},
		"Connect failed_precondition":   {answer: connectResponse(400, "failed_precondition")},
		"Connect resource_exhausted":    {answer: connectResponse(429, "resource_exhausted")},
		"Connect unknown":               {config: Config{RetryServerErrors: true}, answer: connectResponse(500, "unknown"), retry: true},
		"Connect in-progress":           {answer: connectResponse(409, "aborted", info, reason("IN_PROGRESS", ours)), retry: true, code: CodeInProgress},
		"Connect store-unavailable":     {answer: connectResponse(503, "unavailable", info, reason("STORE_UNAVAILABLE", ours), retry, threeSecs), retry: true, code: CodeStoreUnavailable, after: 3 * time.Second},
		"Connect outcome-unknown":       {answer: connectResponse(400, "failed_precondition", info, reason("OUTCOME_UNKNOWN", ours)), code: CodeOutcomeUnknown},
		"Connect, another name":         {answer: connectResponse(503, "busy"), retry: true},
		"Connect, no JSON":              {answer: body(503, "busy", "Content-Type", "application/json"), retry: true},
		"aborted of another API":        {answer: connectResponse(409, "aborted"), http: true},
		"resource_exhausted of another": {answer: connectResponse(429, "resource_exhausted"), http: true, retry: true},
		"a replayed failure": {answer: func() (*http.Response, error) {
			resp, err := grpcResponse(true, 14)()
			resp.Header.Set("Idempotent-Replayed", "true")
			return resp, err
		}},
	} {
		inBubble(t, name, func(t *testing.T) {
			base := &fake{answer: func(n int, _ *http.Request) (*http.Response, error) {
				if n == 1 {
					return test.answer()
				}
				return response(200, "", "Content-Type", "application/proto"), nil
			}}
			var seen recorded
			test.config.Observer = &seen
			req := post(t.Context(), t, strings.NewReader("order"))
			if !test.http {
				req.Header.Set("Connect-Protocol-Version", "1")
			}
			do(t, newTransport(t, base, test.config), req)
			first := seen.attempts[0]
			if first.Retry != test.retry || first.Code != test.code || first.Wait < test.after {
				t.Errorf("got %+v, want a retry: %v, the code %q", first, test.retry, test.code)
			}
		})
	}
}

// The caller reads a failure as it was sent.
func TestFailuresOfConnectCanBeReadAgain(t *testing.T) {
	t.Parallel()
	answer := connectResponse(400, "failed_precondition", "google.rpc.ErrorInfo", reason("KEY_REUSED", ours))
	req := post(t.Context(), t, nil)
	req.Header.Set("Connect-Protocol-Version", "1")
	_, got := do(t, newTransport(t, always(answer), Config{MaxResponseBuffer: -1}), req)
	if !strings.HasPrefix(got, `{"code":"failed_precondition","details":[{"type":"google.rpc.ErrorInfo"`) {
		t.Errorf("read %q", got)
	}
}

// FuzzRPCStatus reads statuses as an attacker may write them.
func FuzzRPCStatus(f *testing.F) {
	f.Add("10", message(field{2, "m"}, field{3, message(field{1, "type.googleapis.com/google.rpc.ErrorInfo"}, field{2, reason("IN_PROGRESS", ours)})}), `{"code":"aborted"}`)
	f.Add("99999999999", "\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", `{"code":"aborted","details":[{"value":"!"}]}`)
	f.Fuzz(func(t *testing.T, code, details, failure string) {
		transport := newTransport(t, &fake{}, Config{})
		req := post(t.Context(), t, nil)
		req.Header.Set("Connect-Protocol-Version", "1")
		grpc := response(200, "", "Content-Type", "application/grpc")
		grpc.Trailer = http.Header{"Grpc-Status": {code}, "Grpc-Status-Details-Bin": {base64.StdEncoding.EncodeToString([]byte(details))}}
		for _, resp := range []*http.Response{grpc, response(409, failure, "Content-Type", "application/json")} {
			if v := transport.judge(req, resp, nil); v.after < 0 || v.running && !v.retryable {
				t.Errorf("the verdict is %+v", v)
			}
		}
	})
}
