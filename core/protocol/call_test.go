package protocol

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// callGuard returns a guard over a new store.
func callGuard(t *testing.T, cfg Config, observer reprise.Observer) *Guard {
	t.Helper()
	engine := must(reprise.New(memstore.New(), reprise.Config{Observer: observer}))
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	return must(Over(engine, cfg))
}

func unscoped() (string, error) { return "", ErrUnscoped }

// callOf returns a call with a key, unless that is empty.
func callOf(key, message string) Call {
	metadata := http.Header{}
	if key != "" {
		metadata.Set("Idempotency-Key", key)
	}
	return Call{
		Procedure: "/orders.v1.Orders/Create", Metadata: metadata,
		Message: func() ([]byte, error) { return []byte(message), nil },
	}
}

// do makes a call whose handler, if it runs, returns result.
func do(t *testing.T, g *Guard, c Call, result CallResult) (got CallResult, ran bool) {
	t.Helper()
	admission := g.AdmitCall(t.Context(), c, unscoped)
	switch {
	case admission.Pass:
		t.Fatal("the call passed")
	case admission.Exchange == nil:
		return admission.Result, false
	}
	defer admission.Exchange.Close()
	reply := admission.Exchange.FinishCall(result)
	if reply.Replace {
		return reply.Result, true
	}
	return result, true
}

// TestCallReplay shows the parts of a message and of an error that a replay has.
func TestCallReplay(t *testing.T) {
	t.Parallel()
	header := NewHeader(Field{Name: "x-order", Value: "1"}, Field{Name: "x-order", Value: "2", Add: true}, Field{Name: "x-raw-bin", Value: "AAEC"})
	trailer := NewHeader(Field{Name: "x-sum", Value: "abc"})
	for name, result := range map[string]CallResult{
		"message":         {Type: "orders.v1.Order", Body: []byte("\x0a\x01a"), Header: header, Trailer: trailer},
		"empty message":   {Type: "google.protobuf.Empty"},
		"error":           {Code: 5, Message: "no such ☃ order", Details: []Detail{{Type: "type.googleapis.com/x.Y", Value: []byte{0, 10, 13, 255}}, {Type: "t"}}, Header: header, Trailer: trailer},
		"error of no use": {Code: 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := callGuard(t, Config{}, nil)
			_, ran := do(t, g, callOf("k", "m"), result)
			if result.Code == 12 { // 501, so it is released
				if _, again := do(t, g, callOf("k", "m"), result); !ran || !again {
					t.Fatalf("ran %v, and again %v", ran, again)
				}
				return
			}
			got, again := do(t, g, callOf("k", "m"), CallResult{Code: 2})
			if !ran || again {
				t.Fatalf("ran %v, and again %v", ran, again)
			}
			if got.Code != result.Code || got.Message != result.Message || got.Type != result.Type || !bytes.Equal(got.Body, result.Body) {
				t.Errorf("the replay is %+v, the first result %+v", got, result)
			}
			if !slices.EqualFunc(got.Details, result.Details, func(a, b Detail) bool { return a.Type == b.Type && bytes.Equal(a.Value, b.Value) }) {
				t.Errorf("the details are %v, want %v", got.Details, result.Details)
			}
			if mark, _ := got.Header.Get("Idempotent-Replayed"); mark != "true" {
				t.Errorf("the replay is not marked: %v", got.Header)
			}
			if fields := slices.Collect(got.Header.All())[1:]; !slices.Equal(fields, slices.Collect(result.Header.All())) {
				t.Errorf("the header is %v, want %v", fields, result.Header)
			}
			if fields := slices.Collect(got.Trailer.All()); !slices.Equal(fields, slices.Collect(result.Trailer.All())) {
				t.Errorf("the trailer is %v, want %v", fields, result.Trailer)
			}
		})
	}
}

// TestCallKeepsNoProtocolFields has a handler set fields that belong to gRPC, to Connect,
// to one call and to the protocol of the key.
func TestCallKeepsNoProtocolFields(t *testing.T) {
	t.Parallel()
	g := callGuard(t, Config{Keep: Keeping{Headers: []string{"x-order"}}}, nil)
	header := NewHeader(
		Field{Name: "grpc-status", Value: "5"}, Field{Name: "Grpc-Status", Value: "6"}, Field{Name: "content-type", Value: "text/html"},
		Field{Name: "grpc-trace-bin", Value: "AA"}, Field{Name: "idempotent-replayed", Value: "no"}, Field{Name: "traceparent", Value: "t"},
		Field{Name: "x-order", Value: "1"}, Field{Name: "x-other", Value: "1"},
	)
	trailer := NewHeader(Field{Name: "grpc-retry-pushback-ms", Value: "-1"}, Field{Name: "endpoint-load-metrics-bin", Value: "AA"}, Field{Name: "x-sum", Value: "1"})
	do(t, g, callOf("k", "m"), CallResult{Type: "a.B", Header: header, Trailer: trailer})
	got, ran := do(t, g, callOf("k", "m"), CallResult{})
	if ran || got.Code != 0 || got.Type != "a.B" || got.Header.Len() != 2 || got.Trailer.Len() != 1 {
		t.Errorf("ran %v, the replay is %+v", ran, got)
	}
	do(t, g, callOf("e", "m"), CallResult{Code: 3, Message: "bad", Header: header})
	if got, ran := do(t, g, callOf("e", "m"), CallResult{}); ran || got.Code != 3 || got.Message != "bad" {
		t.Errorf("ran %v, the replay of an error behind a list of fields to keep is %+v", ran, got)
	}
}

// TestCallRefusals shows the details of refusals, which no Problems.Write replaces.
func TestCallRefusals(t *testing.T) {
	t.Parallel()
	g := callGuard(t, Config{
		Limits: Limits{RequestBody: 4, ResponseBody: 4}, Problems: ProblemFormat{Write: func(context.Context, *Request, Problem) Response { return Response{Status: 418} }},
	}, nil)
	if got, _ := do(t, g, callOf("k", "12345"), CallResult{}); got.Code != CodeRequestTooLarge.Problem().GRPC {
		t.Errorf("a large message: %+v", got)
	}
	broken := callOf("k", "")
	broken.Message = func() ([]byte, error) { return nil, errors.New("not a message") }
	if got, _ := do(t, g, broken, CallResult{}); got.Code != CodeInternalError.Problem().GRPC {
		t.Errorf("no message: %+v", got)
	}
	if got, ran := do(t, g, callOf("k", "1"), CallResult{Body: []byte("12345")}); !ran || string(got.Body) != "12345" {
		t.Errorf("a large response: ran %v, %+v", ran, got)
	}
	if got, ran := do(t, g, callOf("k", "1"), CallResult{}); ran || got.Code != CodeResultUnavailable.Problem().GRPC {
		t.Errorf("the retry of a large response: ran %v, %+v", ran, got)
	}

	running := g.AdmitCall(t.Context(), callOf("busy", "1"), unscoped).Exchange
	got, ran := do(t, g, callOf("busy", "1"), CallResult{})
	if ran || got.Code != 10 || len(got.Details) != 2 || got.Details[1].Type != "type.googleapis.com/google.rpc.RetryInfo" {
		t.Errorf("a running call: ran %v, %+v", ran, got)
	}
	if wait, _ := got.Trailer.Get("grpc-retry-pushback-ms"); wait != "1000" {
		t.Errorf("the pushback is %q", wait)
	}
	running.AbandonCall(false)
	running.Close()
	if _, ran := do(t, g, callOf("busy", "1"), CallResult{}); !ran {
		t.Error("the call after a panic did not run")
	}
}

// TestCallOfOthers reads responses that no call made.
func TestCallOfOthers(t *testing.T) {
	t.Parallel()
	typed := func(media string) Header { return NewHeader(Field{Name: "Content-Type", Value: media}) }
	failure := func(code string) Header {
		return NewHeader(Field{Name: "Content-Type", Value: messageStart + statusType + `"`}, Field{Name: "Grpc-Status", Value: code})
	}
	failed := failure("5")
	for name, c := range map[string]struct {
		response Response
		code     uint32
		problem  Code
	}{
		"a status":           {Response{Status: 404}, 5, ""},
		"a conflict":         {Response{Status: 409}, 9, ""},
		"a failure":          {Response{Status: 500}, 13, ""},
		"unavailable":        {Response{Status: 503}, 14, ""},
		"a strange status":   {Response{Status: 418}, 2, ""},
		"a message":          {Response{Status: 200, Header: typed("application/protobuf")}, 0, ""},
		"JSON":               {Response{Status: 201, Header: typed("application/json")}, 0, CodeResultUnavailable},
		"half a status":      {Response{Status: 404, Header: failed, Body: []byte{8}}, 0, CodeRecordCorrupt},
		"another status":     {Response{Status: 404, Header: failed, Body: []byte{8, 6}}, 0, CodeRecordCorrupt},
		"a status that is 0": {Response{Status: 404, Header: failed}, 0, CodeRecordCorrupt},
		"no error at all":    {Response{Status: 404, Header: failure("0"), Body: []byte{}}, 0, CodeRecordCorrupt},
		"half of no error":   {Response{Status: 404, Header: failure("0"), Body: []byte{8}}, 0, CodeRecordCorrupt},
		"a code of nobody":   {Response{Status: 500, Header: failure("17"), Body: []byte{8, 17}}, 0, CodeRecordCorrupt},
		"an error":           {Response{Status: 404, Header: failure("5"), Body: []byte{8, 5}}, 5, ""},
		"a code alone":       {Response{Status: 404, Header: NewHeader(Field{Name: "Grpc-Status", Value: "6"})}, 5, ""},
		"a type alone":       {Response{Status: 404, Header: typed(messageStart + statusType + `"`), Body: []byte{8, 6}}, 5, ""},
		"the last success":   {Response{Status: 299, Header: typed("application/protobuf")}, 0, ""},
		"no success":         {Response{Status: 300, Header: typed("application/protobuf")}, 2, ""},
		"an open quote":      {Response{Status: 200, Header: typed(messageStart + "a.B")}, 0, CodeResultUnavailable},
		"an end of a quote":  {Response{Status: 200, Header: typed(`a.B"`)}, 0, CodeResultUnavailable},
	} {
		got, problem := callResult(c.response)
		if got.Code != c.code || problem != c.problem {
			t.Errorf("%s: %+v and problem %q, want code %d and problem %q", name, got, problem, c.code, c.problem)
		}
	}
}

// A record that no call made is reported where a call meets it, and is corrupt only if no
// guard can have written it.
func TestCallThatMeetsAnotherRecordReportsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header Header
		code   Code
		told   int
	}{
		"a response of HTTP": {NewHeader(Field{Name: "Content-Type", Value: "application/json"}), CodeResultUnavailable, 0},
		"half an error":      {NewHeader(Field{Name: "Content-Type", Value: messageStart + statusType + `"`}, Field{Name: "Grpc-Status", Value: "5"}), CodeRecordCorrupt, 1},
	} {
		var told int
		g := callGuard(t, Config{}, reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
			if e.Name() == "store-error" {
				told++
			}
		}))
		got := g.result(t.Context(), Response{Status: 200, Header: c.header, Body: []byte{8}})
		if got.Code != c.code.Problem().GRPC || told != c.told {
			t.Errorf("%s: %+v, and %d reports, want %s and %d", name, got, told, c.code, c.told)
		}
	}
}

// A call that runs unprotected is marked, and one whose result is kept says until when.
func TestCallsWithoutARecordAreMarked(t *testing.T) {
	t.Parallel()
	away := &teststore.Hooked{Store: memstore.New(), OnClaim: func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
		return store.ClaimResult{}, store.ErrUnavailable
	}}
	engine := must(reprise.New(away, reprise.Config{ClaimTimeout: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}))
	defer engine.Close(context.WithoutCancel(t.Context()))
	g := must(Over(engine, Config{FailOpen: true, Expires: true}))
	a := g.AdmitCall(t.Context(), callOf("k", "m"), unscoped)
	defer a.Exchange.Close()
	if reply := a.Exchange.FinishCall(CallResult{Type: "a.B"}); reply.Replace || reply.Mark != markUnprotected {
		t.Errorf("unprotected: %+v", reply)
	}
	kept := callGuard(t, Config{Expires: true}, nil)
	a = kept.AdmitCall(t.Context(), callOf("k", "m"), unscoped)
	defer a.Exchange.Close()
	if reply := a.Exchange.FinishCall(CallResult{Type: "a.B"}); reply.Replace || reply.Mark.Name != FieldExpires {
		t.Errorf("kept: %+v", reply)
	}
}

// A stream with a key is marked and reported as unprotected, unless the policy does not
// concern it. One whose Skip panics runs unmarked, and the observer hears of it.
func TestStreamsAreMarkedWhereThePolicyConcernsThem(t *testing.T) {
	t.Parallel()
	safe, health := callOf("k", ""), callOf("k", "")
	safe.Safe, health.Procedure = true, "/grpc.health.v1.Health/Watch"
	skips := func(path string) func(context.Context, *Request) bool {
		return func(_ context.Context, r *Request) bool { return r.Path == path }
	}
	for name, c := range map[string]struct {
		cfg    Config
		call   Call
		events []string
	}{
		"with a key":        {Config{Skip: skips("/another")}, callOf("k", ""), []string{"unprotected"}},
		"skipped":           {Config{Skip: skips("/orders.v1.Orders/Create")}, callOf("k", ""), nil},
		"of another method": {Config{Methods: []string{"PUT"}}, callOf("k", ""), nil},
		"safe":              {Config{}, safe, nil},
		"a health check":    {Config{}, health, nil},
		"whose Skip panics": {Config{Skip: func(context.Context, *Request) bool { panic("a bug") }}, callOf("k", ""), []string{"panic"}},
	} {
		var events []string
		g := callGuard(t, c.cfg, reprise.ObserverFunc(func(_ context.Context, e reprise.Event) { events = append(events, e.Name()) }))
		events = nil // one declares the policy
		mark := g.PassStream(t.Context(), c.call)
		if !slices.Equal(events, c.events) || (mark == markUnprotected) != (name == "with a key") || mark.Name != "" && mark != markUnprotected {
			t.Errorf("a stream %s: marked %v, %v", name, mark, events)
		}
	}
}

// A code that gRPC does not have counts as UNKNOWN.
func TestGRPCCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[uint32]uint32{0: 0, 16: 16, 17: 2, 1 << 31: 2} {
		if got := grpcCode(code); got != want {
			t.Errorf("the code %d counts as %d, want %d", code, got, want)
		}
	}
}

func FuzzCallStatus(f *testing.F) {
	f.Add(uint32(5), "message", "type", []byte{1}, []byte{8, 5})
	f.Add(uint32(1<<31), "\xff", "", []byte(nil), []byte{0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, code uint32, message, kind string, value, garbage []byte) {
		_, _, _, _ = parseStatus(garbage) // it does not panic
		details := []Detail{retryInfo(time.Second), {Type: kind, Value: value}}
		gotCode, gotMessage, gotDetails, ok := parseStatus(appendStatus(nil, code, message, details))
		if !ok || gotCode != code || gotMessage != strings.ToValidUTF8(message, "\uFFFD") || len(gotDetails) != 2 || !bytes.Equal(gotDetails[1].Value, value) {
			t.Fatalf("%v: %d %q %v", ok, gotCode, gotMessage, gotDetails)
		}
	})
}

// fields are those of a message, as an adapter shows them.
type fields map[string]any

func (f fields) field(name string) any {
	if inner, ok := f[name].(fields); ok {
		return inner.field
	}
	return f[name]
}

// keyInField returns a call without metadata whose message has these fields.
func keyInField(f fields) Call {
	c := callOf("", "m")
	c.Field = f.field
	return c
}

// R48: the key of a call may be in a field of its message, which is not encoded before it
// is known that there is one. Guards inside of one another know the call by it (R51).
func TestCallKeyInAField(t *testing.T) {
	t.Parallel()
	g := callGuard(t, Config{Key: KeyField("/meta/request_id"), Label: "service"}, nil)
	with := keyInField(fields{"meta": fields{"request_id": "k"}})
	first := g.AdmitCall(t.Context(), with, unscoped)
	if first.Exchange == nil {
		t.Fatalf("the first call: %+v", first)
	}
	if again := g.AdmitCall(first.Exchange.Context(), with, unscoped); !again.Pass {
		t.Errorf("the same guard inside: %+v", again)
	}
	other := must(g.With(func(c *Config) { c.Label, c.Preset = "payments", reprise.AtMostOnce }))
	if again := other.AdmitCall(first.Exchange.Context(), with, unscoped); again.Result.Code != grpcInternal {
		t.Errorf("another guard inside: %+v", again)
	}
	first.Exchange.FinishCall(CallResult{Type: "a.B"})
	first.Exchange.Close()
	if got, ran := do(t, g, with, CallResult{}); ran || got.Type != "a.B" {
		t.Errorf("the retry: ran %v, %+v", ran, got)
	}
	for name, f := range map[string]fields{"none": nil, "an empty message": {"meta": fields{}}, "another field": {"request_id": "k"}} {
		c := keyInField(f)
		c.Message = func() ([]byte, error) {
			t.Errorf("%s: the message was encoded", name)
			return nil, nil
		}
		if a := g.AdmitCall(t.Context(), c, func() (string, error) { return "", errors.New("nobody") }); !a.Pass {
			t.Errorf("%s: %+v", name, a.Result)
		}
	}
}

// R48: a field that cannot be the key refuses the call, and so does a call whose adapter
// does not show fields.
func TestCallKeyFieldIsNotIgnored(t *testing.T) {
	t.Parallel()
	g := callGuard(t, Config{Key: KeyField("/meta/request_id")}, nil)
	refused := func(name string, c Call) {
		t.Helper()
		got, ran := do(t, g, c, CallResult{})
		if ran || got.Code != grpcInvalidArgument || len(got.Details) != 1 || !strings.Contains(string(got.Details[0].Value), "KEY_INVALID") {
			t.Errorf("%s: ran %v, %+v", name, ran, got)
		}
	}
	for name, f := range map[string]fields{
		"a string on the way": {"meta": "k"}, "a list on the way": {"meta": []string{"k"}}, "a number": {"meta": fields{"request_id": 7}},
		"a message": {"meta": fields{"request_id": fields{}}}, "not a key": {"meta": fields{"request_id": "a b"}}, "an empty key": {"meta": fields{"request_id": ""}},
		"a key of 1 MiB": {"meta": fields{"request_id": strings.Repeat("k", 1<<20)}},
	} {
		refused(name, keyInField(f))
	}
	refused("no fields", callOf("", "m"))
	both := keyInField(fields{"meta": fields{"request_id": "k"}})
	both.Metadata = callOf("other", "m").Metadata
	refused("two keys", both)
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Bytes that are not a google.rpc.Status are refused, for any defect. Unknown fields are
// skipped.
func TestStatusOfACallIsReadOrRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		code uint32
		ok   bool
	}{
		"nothing":                               {"", 0, true},
		"a code":                                {"\x08\x05", 5, true},
		"an unknown number":                     {"\x20\x07\x08\x05", 5, true},
		"an unknown text":                       {"\x22\x01x\x08\x05", 5, true},
		"an unknown number of 8 bytes":          {"\x21\x00\x00\x00\x00\x00\x00\x00\x00\x08\x05", 5, true},
		"an unknown number of 4 bytes":          {"\x25\x00\x00\x00\x00\x08\x05", 5, true},
		"the number of 8 bytes last":            {"\x08\x05\x21\x00\x00\x00\x00\x00\x00\x00\x00", 5, true},
		"the number of 4 bytes last":            {"\x08\x05\x25\x00\x00\x00\x00", 5, true},
		"the largest number of a field":         {"\xf8\xff\xff\xff\x0f\x00\x08\x05", 5, true},
		"a field of number 0":                   {"\x00\x05", 0, false},
		"a field of number 0 in 2 bytes":        {"\x80\x00\x05", 0, false},
		"a field of number 2^29":                {"\x80\x80\x80\x80\x10\x05", 0, false},
		"a tag that breaks off":                 {"\x08\x05\x80", 0, false},
		"a tag that is too large":               {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, false},
		"a number that is missing":              {"\x08", 0, false},
		"a number that breaks off":              {"\x08\x80", 0, false},
		"a number that is too large":            {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, false},
		"a text without its length":             {"\x12", 0, false},
		"a text whose length breaks off":        {"\x12\x80", 0, false},
		"a text whose length is too large":      {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, false},
		"a text that is a byte too short":       {"\x12\x02x", 0, false},
		"a text that is as long as memory":      {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7fx", 0, false},
		"a number of 8 bytes that breaks off":   {"\x08\x05\x21\x00\x00\x00\x00\x00\x00\x00", 0, false},
		"a number of 4 bytes that breaks off":   {"\x08\x05\x25\x00\x00\x00", 0, false},
		"the start of a group":                  {"\x23\x24\x08\x05", 0, false},
		"a detail that is broken":               {"\x1a\x02\x0a\x05", 0, false},
		"a detail of a text that is a byte off": {"\x1a\x03\x0a\x02x", 0, false},
	} {
		code, message, details, ok := parseStatus([]byte(c.text))
		if code != c.code || ok != c.ok || message != "" || details != nil {
			t.Errorf("%s: %d %q %v, %t, want %d, %t", name, code, message, details, ok, c.code, c.ok)
		}
	}
}

// A delay is in seconds and the nanoseconds beyond them, as google.protobuf.Duration has
// it.
func TestRetryInfoHasItsDelay(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]string{
		2 * time.Second:         "\x0a\x02\x08\x02",
		1500 * time.Millisecond: "\x0a\x08\x08\x01\x10\x80\xca\xb5\xee\x01",
		time.Millisecond:        "\x0a\x04\x10\xc0\x84\x3d",
	} {
		if got := retryInfo(delay); string(got.Value) != want || got.Type != "type.googleapis.com/google.rpc.RetryInfo" {
			t.Errorf("%v: %s %x, want %x", delay, got.Type, got.Value, want)
		}
	}
}
