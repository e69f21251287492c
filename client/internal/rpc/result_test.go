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
)

// text returns an encoded field with a text.
func text(field byte, value string) string {
	return string([]byte{field<<3 | 2, byte(len(value))}) + value
}

// number returns an encoded field with a number.
func number(field byte, n uint64) string {
	return string(binary.AppendUvarint([]byte{field << 3}, n))
}

func errorInfo(reason, domain string) Detail {
	return Detail{"google.rpc.ErrorInfo", []byte(text(1, reason) + text(2, domain) + text(3, text(1, "type")+text(2, "uri")))}
}

func retryInfo(seconds, nanos uint64) Detail {
	return Detail{"google.rpc.RetryInfo", []byte(text(1, number(1, seconds)+number(2, nanos)))}
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
		"a broken connection":              {Result{Code: unavailable}, 0, "", ""},
		"a deadline":                       {Result{Code: deadlineExceeded}, 0, "", ""},
		"a cancellation":                   {Result{Code: cancelled}, 0, "", ""},
		"a local failure":                  {Result{Code: internal}, 500, "", ""},
		"a service that is down":           {Result{Code: unavailable, Metadata: answered}, 503, "", ""},
		"a service that was too slow":      {Result{Code: deadlineExceeded, Metadata: answered}, 504, "", ""},
		"an aborted transaction":           {Result{Code: aborted, Metadata: answered}, 409, "", ""},
		"a message that is too large":      {Result{Code: resourceExhausted}, 400, "", ""},
		"a limit of rates":                 {Result{Code: resourceExhausted, Metadata: http.Header{"Retry-After": {"7"}}}, 429, "7", ""},
		"a limit with a RetryInfo":         {Result{Code: resourceExhausted, Metadata: answered, Details: []Detail{retryInfo(1, 1)}}, 429, "2", ""},
		"a pushback":                       {Result{Code: unavailable, Metadata: pushed("1500")}, 503, "2", ""},
		"a pushback that forbids":          {Result{Code: unavailable, Metadata: pushed("-1")}, 503, "", ""},
		"a refusal":                        {Result{Code: aborted, Metadata: answered, Details: []Detail{errorInfo("IN_PROGRESS", domain), retryInfo(3, 0)}}, 409, "3", `{"code":"in-progress","retryable":true}`},
		"a refusal that is final":          {Result{Code: aborted, Metadata: answered, Details: []Detail{errorInfo("KEY_REUSED", domain)}}, 409, "", `{"code":"key-reused","retryable":false}`},
		"an ErrorInfo of another service":  {Result{Code: aborted, Metadata: answered, Details: []Detail{errorInfo("IN_PROGRESS", "example.com")}}, 409, "", ""},
		"an ErrorInfo that breaks off":     {Result{Code: aborted, Metadata: answered, Details: []Detail{{"google.rpc.ErrorInfo", []byte("\x0a\x7fIN")}}}, 409, "", ""},
		"a RetryInfo that breaks off":      {Result{Code: unavailable, Metadata: answered, Details: []Detail{{"google.rpc.RetryInfo", []byte("\x0a\x02\x08")}}}, 503, "", ""},
		"a RetryInfo of a negative time":   {Result{Code: unavailable, Metadata: answered, Details: []Detail{retryInfo(1<<63, 1<<63)}}, 503, "", ""},
		"a RetryInfo with another field":   {Result{Code: unavailable, Metadata: answered, Details: []Detail{{"google.rpc.RetryInfo", []byte("\x15xxxx")}}}, 503, "", ""},
		"a RetryInfo that ends in its tag": {Result{Code: unavailable, Metadata: answered, Details: []Detail{{"google.rpc.RetryInfo", []byte("\x0a")}}}, 503, "", ""},
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
		return Result{Err: down, Code: unavailable, Metadata: http.Header{"X": nil}}
	}})
	var lost *repriseclient.UnknownOutcomeError
	if !errors.As(err, &lost) || !errors.Is(err, down) || len(keys) != 2 || keys[0] != keys[1] || `"`+lost.Key()+`"` != keys[0] || lost.KeyHash == "" {
		t.Errorf("the call ended with %v after attempts with %q", err, keys)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := NewCaller(repriseclient.Config{MaxAttempts: -1}); err == nil {
		t.Error("a negative number of attempts is accepted")
	}
}

func FuzzRefusalOf(f *testing.F) {
	f.Add([]byte(text(1, "IN_PROGRESS") + text(2, domain)))
	f.Add(retryInfo(1, 2).Value)
	f.Fuzz(func(t *testing.T, b []byte) {
		p := RefusalOf([]Detail{{"google.rpc.ErrorInfo", b}, {"google.rpc.RetryInfo", b}})
		if p.RetryAfter < 0 {
			t.Errorf("a wait of %s", p.RetryAfter)
		}
	})
}
