package proxy

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// Every option of a file is one of the guard. What the guard does with it, core/protocol
// tests.
func TestOptionsOfAFileReachTheGuard(t *testing.T) {
	t.Parallel()
	c, err := Parse([]byte(`
upstream = "http://a"
scope = "unscoped"
[default]
name = "orders"
methods = ["PUT"]
required = true
headers = ["X-Key", "X-Alias"]
endpoint = "pay"
preset = "recoverable"
retention = "2h"
horizon = "3h"
wait = "4s"
max_attempts = 5
max_key = 64
max_request_body = 1000
max_response_body = 2000
fingerprint = "json"
fingerprint_omit = ["/at"]
fingerprint_headers = ["X-Version"]
`))
	must(t, err)
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	must(t, err)
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	guard, err := c.Default.guard(engine, protocol.Sealing{}, false)
	must(t, err)
	over, err := protocol.Over(engine, protocol.Config{
		Label: "orders", Methods: []string{"PUT"}, Required: true, Key: protocol.KeyHeader("X-Key", "X-Alias"), Endpoint: "pay",
		Retention: 2 * time.Hour, Horizon: 3 * time.Hour, Wait: 4 * time.Second, MaxAttempts: 5,
		Limits: protocol.Limits{Key: 64, RequestBody: 1000, ResponseBody: 2000},
		Fingerprint: protocol.Fingerprinting{
			Func: protocol.CanonicalJSON, Omit: []string{"/at"}, Headers: []string{"X-Version", "Host"},
		},
	})
	must(t, err)
	got, want := guard.Config(), over.Config()
	if f := got.Fingerprint.Func; reflect.ValueOf(f).Pointer() != reflect.ValueOf(want.Fingerprint.Func).Pointer() {
		t.Error("the fingerprint is not that of JSON")
	}
	got.Fingerprint.Func, want.Fingerprint.Func, got.Describe, got.Problems.Write = nil, nil, nil, nil // functions are not compared
	if got, want := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("the guard has %s, want %s", got, want)
	}
	open, err := (&Policy{Fingerprint: "none", Preset: "recoverable", FailOpen: true}).guard(engine, protocol.Sealing{}, true)
	must(t, err)
	if c := open.Config(); !c.FailOpen || reflect.ValueOf(c.Fingerprint.Func).Pointer() != reflect.ValueOf(protocol.NoFingerprint).Pointer() {
		t.Errorf("with fail_open and no fingerprint: %+v", c)
	}
	plain, err := new(Policy).guard(engine, protocol.Sealing{}, true)
	must(t, err)
	if c := plain.Config(); c.Preset != reprise.AtMostOnce {
		t.Errorf("without a preset: %+v", c)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
