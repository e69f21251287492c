package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/client/internal/rpcstatus"
)

const ours = "github.com/reprise-go/reprise"

// text returns an encoded field with a text.
func text(field byte, value string) string {
	return string([]byte{field<<3 | 2, byte(len(value))}) + value
}

// number returns an encoded field with a number.
func number(field byte, n uint64) string {
	return string(binary.AppendUvarint([]byte{field << 3}, n))
}

func errorInfo(reason, domain string) rpcstatus.Detail {
	return rpcstatus.Detail{Type: "google.rpc.ErrorInfo", Value: []byte(text(1, reason) + text(2, domain) + text(3, text(1, "type")+text(2, "uri")))}
}

func retryInfo(seconds, nanos uint64) rpcstatus.Detail {
	return rpcstatus.Detail{Type: "google.rpc.RetryInfo", Value: []byte(text(1, number(1, seconds)+number(2, nanos)))}
}

func TestResultStandsForAResponse(t *testing.T) {
	t.Parallel()
	answered := http.Header{"Content-Type": {"application/grpc"}}
	pushed := func(ms string) http.Header { return http.Header{"Grpc-Retry-Pushback-Ms": {ms}} }
	for name, c := range map[string]struct {
		result Result
		status int // 0: none, and its error
		wait   string
		body   string
	}{
		"a message":                        {Result{Metadata: answered}, 200, "", ""},
		"a broken connection":              {Result{Code: 14}, 0, "", ""},
		"a deadline":                       {Result{Code: 4}, 0, "", ""},
		"a cancellation":                   {Result{Code: 1}, 0, "", ""},
		"a local failure":                  {Result{Code: 13}, 0, "", ""},
		"a service that is down":           {Result{Code: 14, Metadata: answered}, 503, "", ""},
		"a service that was too slow":      {Result{Code: 4, Metadata: answered}, 504, "", ""},
		"an aborted transaction":           {Result{Code: 10, Metadata: answered}, 503, "", ""},
		"a message that is too large":      {Result{Code: 8, Metadata: answered}, 400, "", ""},
		"a limit of rates":                 {Result{Code: 8, Metadata: http.Header{"Retry-After": {"7"}}}, 429, "7", ""},
		"a limit with a RetryInfo":         {Result{Code: 8, Metadata: answered, Details: []rpcstatus.Detail{retryInfo(1, 1)}}, 429, "2", ""},
		"a pushback":                       {Result{Code: 14, Metadata: pushed("1500")}, 503, "2", ""},
		"a pushback that forbids":          {Result{Code: 14, Metadata: pushed("-1")}, 503, "", ""},
		"a refusal":                        {Result{Code: 10, Metadata: answered, Details: []rpcstatus.Detail{errorInfo("IN_PROGRESS", ours), retryInfo(3, 0)}}, 503, "3", `{"code":"in-progress","retryable":true}`},
		"a refusal that is final":          {Result{Code: 10, Metadata: answered, Details: []rpcstatus.Detail{errorInfo("KEY_REUSED", ours)}}, 503, "", `{"code":"key-reused","retryable":false}`},
		"an ErrorInfo of another service":  {Result{Code: 10, Metadata: answered, Details: []rpcstatus.Detail{errorInfo("IN_PROGRESS", "example.com")}}, 503, "", ""},
		"an ErrorInfo that breaks off":     {Result{Code: 10, Metadata: answered, Details: []rpcstatus.Detail{{Type: "google.rpc.ErrorInfo", Value: []byte("\x0a\x7fIN")}}}, 503, "", ""},
		"a RetryInfo that breaks off":      {Result{Code: 14, Metadata: answered, Details: []rpcstatus.Detail{{Type: "google.rpc.RetryInfo", Value: []byte("\x0a\x02\x08")}}}, 503, "", ""},
		"a RetryInfo of a negative time":   {Result{Code: 14, Metadata: answered, Details: []rpcstatus.Detail{retryInfo(1<<63, 1<<63)}}, 503, "", ""},
		"a RetryInfo with another field":   {Result{Code: 14, Metadata: answered, Details: []rpcstatus.Detail{{Type: "google.rpc.RetryInfo", Value: []byte("\x15xxxx")}}}, 503, "", ""},
		"a RetryInfo that ends in its tag": {Result{Code: 14, Metadata: answered, Details: []rpcstatus.Detail{{Type: "google.rpc.RetryInfo", Value: []byte("\x0a")}}}, 503, "", ""},
	} {
		if c.result.Code != 0 {
			c.result.Err = errors.New(name)
		}
		resp, err := c.result.response(new(http.Request))
		if c.status == 0 {
			if !errors.Is(err, c.result.Err) || resp != nil {
				t.Errorf("%s: %v, %v, want its error", name, resp, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != c.status || resp.Header.Get("Retry-After") != c.wait || string(body) != c.body {
			t.Errorf("%s: %d, Retry-After %q, %s, %v", name, resp.StatusCode, resp.Header.Get("Retry-After"), body, err)
		}
		if want := map[bool]string{true: "application/problem+json"}[c.body != ""]; resp.Header.Get("Content-Type") != want {
			t.Errorf("%s: Content-Type %q, want %q", name, resp.Header.Get("Content-Type"), want)
		}
	}
}

// The key of a call that was given up is in its error, to go on with, and is not printed.
func TestCallThatIsGivenUpHasItsKey(t *testing.T) {
	t.Parallel()
	caller, err := NewCaller(repriseclient.Config{MaxAttempts: 2, Delay: time.Nanosecond, Methods: []string{"PUT"}})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	down := errors.New("down")
	err = caller.Do(t.Context(), &Call{Host: "host", Procedure: "/s/m", Attempt: func(_ context.Context, key string) Result {
		keys = append(keys, key)
		return Result{Err: down, Code: 14, Metadata: http.Header{"X": nil}}
	}})
	var lost *repriseclient.UnknownOutcomeError
	if !errors.As(err, &lost) || !errors.Is(err, down) || len(keys) != 2 || keys[0] != keys[1] || `"`+lost.Key()+`"` != keys[0] || lost.KeyHash == "" {
		t.Errorf("the call ended with %v after attempts with %q", err, keys)
	}
}

// A failure that the library meets before anything is sent is not retried, unless the
// caller says so.
func TestLocalFailureIsNotRetried(t *testing.T) {
	t.Parallel()
	for want, retry := range map[int]func(*http.Response, error, bool) bool{
		1: nil,
		2: func(_ *http.Response, err error, _ bool) bool { return err != nil },
	} {
		caller, err := NewCaller(repriseclient.Config{MaxAttempts: 2, Delay: time.Nanosecond, Retry: retry})
		if err != nil {
			t.Fatal(err)
		}
		attempts, marshalling := 0, errors.New("cannot be encoded")
		err = caller.Do(t.Context(), &Call{Attempt: func(context.Context, string) Result {
			attempts++
			return Result{Err: marshalling, Code: 13}
		}})
		var lost *repriseclient.UnknownOutcomeError
		if !errors.As(err, &lost) || !errors.Is(err, marshalling) || attempts != want {
			t.Errorf("%d attempts, want %d, %v", attempts, want, err)
		}
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := NewCaller(repriseclient.Config{MaxAttempts: -1}); err == nil {
		t.Error("a negative number of attempts is accepted")
	}
}

// Whatever the details are, the response has a wait that is none or positive.
func FuzzResult(f *testing.F) {
	f.Add(errorInfo("IN_PROGRESS", ours).Value)
	f.Add(retryInfo(1, 2).Value)
	f.Fuzz(func(t *testing.T, b []byte) {
		r := Result{Code: 10, Metadata: http.Header{"X": nil}, Details: []rpcstatus.Detail{{Type: "google.rpc.ErrorInfo", Value: b}, {Type: "google.rpc.RetryInfo", Value: b}}}
		resp, err := r.response(new(http.Request))
		if err != nil {
			t.Fatal(err)
		}
		if wait := resp.Header.Get("Retry-After"); wait != "" && (wait[0] < '1' || wait[0] > '9') {
			t.Errorf("a wait of %s", wait)
		}
	})
}
