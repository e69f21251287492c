package openapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	validation "github.com/pb33f/libopenapi-validator/errors"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/contract"
	"github.com/reprise-go/reprise/core/store"
)

// api is a server, and the validator of its contract.
type api struct {
	*testing.T

	handler http.Handler
	store   store.Store
	faults  *faultstore.Faults
	held    chan struct{} // a value for each handler that waits for release
	release chan struct{}
	checks  validator.Validator
}

// serve starts a server with a policy, whose contract is embedded in the document of an
// API.
func serve(t *testing.T, cfg protocol.Config) *api {
	t.Helper()
	a := &api{T: t, store: memstore.New(), held: make(chan struct{}), release: make(chan struct{})}
	var store store.Store
	store, a.faults = faultstore.New(a.store)
	engine, err := reprise.New(store, reprise.Config{ClaimTimeout: 500 * time.Millisecond, CompleteTimeout: 500 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() {
		a.faults.Close()
		_ = engine.Close(context.WithoutCancel(t.Context()))
	})
	guard, err := protocol.Over(engine, cfg)
	must(t, err)
	a.handler = reprisehttp.Middleware(guard, tenantOf)(http.HandlerFunc(a.order))
	a.checks = validatorOf(t, document(t, contract.Of(guard).OpenAPIJSON()))
	return a
}

func tenantOf(r *http.Request) (string, error) {
	if r.Header.Get("X-Tenant") == "none" {
		return "", errors.New("not authenticated")
	}
	return "tenant", nil
}

// order is the handler. The body selects its behaviour.
func (a *api) order(w http.ResponseWriter, r *http.Request) {
	switch body, _ := io.ReadAll(r.Body); string(body) {
	case `"hold"`:
		a.held <- struct{}{}
		<-a.release
	case `"unknown"`:
		protocol.Unknown(r.Context(), "the bank did not answer")
	case `"fields"`:
		for i := range 80 {
			w.Header().Add("X-Many", strconv.Itoa(i))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"id":1}`)
}

// document returns the document of an API whose components are those of the contract.
func document(t *testing.T, contract []byte) []byte {
	t.Helper()
	var doc map[string]any
	must(t, json.Unmarshal(contract, &doc))
	components := doc["components"].(map[string]any)
	ref := func(kind, name string) map[string]any {
		return map[string]any{"$ref": "#/components/" + kind + "/" + name}
	}
	headers := map[string]any{}
	for component := range components["headers"].(map[string]any) {
		switch component {
		case "IdempotentReplayed":
			headers["Idempotent-Replayed"] = ref("headers", component)
		case "IdempotencyStatus":
			headers["Idempotency-Status"] = ref("headers", component)
		case "IdempotencyKeyExpires":
			headers["Idempotency-Key-Expires"] = ref("headers", component)
		}
	}
	responses := map[string]any{"201": map[string]any{
		"description": "The order.", "headers": headers,
		"content": map[string]any{"application/json": map[string]any{"schema": map[string]any{
			"type": "object", "required": []string{"id"}, "properties": map[string]any{"id": map[string]any{"type": "integer"}},
		}}},
	}}
	for component := range components["responses"].(map[string]any) {
		responses[strings.TrimPrefix(component, "Idempotency")] = ref("responses", component)
	}
	var body any = map[string]any{}
	if _, there := components["schemas"].(map[string]any)["IdempotencyKeyBody"]; there {
		body = map[string]any{"allOf": []any{ref("schemas", "IdempotencyKeyBody"), map[string]any{"type": "object"}}}
	}
	doc["info"] = map[string]any{"title": "Orders", "version": "1"}
	doc["paths"] = map[string]any{"/orders": map[string]any{"post": map[string]any{
		"parameters":  []any{ref("parameters", "IdempotencyKey")},
		"requestBody": map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": body}}},
		"responses":   responses,
	}}}
	text, err := json.Marshal(doc)
	must(t, err)
	return text
}

func validatorOf(t *testing.T, text []byte) validator.Validator {
	t.Helper()
	doc, err := libopenapi.NewDocument(text)
	must(t, err)
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return v
}

// request returns a request of an order.
func request(t *testing.T, key, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

// send sends a request, and checks the response with the contract.
func (a *api) send(r *http.Request) (status int, code string, response *httptest.ResponseRecorder) {
	a.Helper()
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	sent := w.Result()
	defer sent.Body.Close()
	if ok, errs := a.checks.ValidateHttpResponse(r, sent); !ok {
		a.Errorf("the response %d %s is not that of the contract: %s", w.Code, w.Body, reasons(errs))
	}
	var problem struct{ Code string }
	_ = json.Unmarshal(w.Body.Bytes(), &problem)
	return w.Code, problem.Code, w
}

func reasons(errs []*validation.ValidationError) string {
	var all []string
	for _, e := range errs {
		all = append(all, e.Message+": "+e.Reason)
		for _, s := range e.SchemaValidationErrors {
			all = append(all, s.Reason)
		}
	}
	return strings.Join(all, "; ")
}

// Every policy's document is one of OpenAPI 3.1, alone and in the document of an API.
func TestDocumentsAreValid(t *testing.T) {
	t.Parallel()
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	must(t, err)
	var broken string
	for name, cfg := range map[string]protocol.Config{
		"default": {},
		"everything": {
			Label: "payments", Key: protocol.KeyHeader("Idempotency-Key", "X-Key"), KeyMode: protocol.Strict, Required: true, Preset: reprise.AtMostOnce,
			Expires: true,
		},
		"a key in the body":    {Key: protocol.KeyField("/meta/a~1b/"), KeyMode: protocol.Strict, Required: true},
		"a key in the query":   {Key: protocol.KeyParam("request_id"), Required: true},
		"a key of the content": {Key: protocol.KeyContent(5 * time.Minute)},
		"own problems": {
			Oversize: protocol.Unavailable, FailOpen: true, Limits: protocol.Limits{Key: 4096},
			Problems: protocol.ProblemFormat{Write: func(context.Context, *protocol.Request, protocol.Problem) protocol.Response {
				return protocol.Response{}
			}},
		},
	} {
		guard, err := protocol.Over(engine, cfg)
		must(t, err)
		p := contract.Of(guard)
		if name == "default" {
			broken = strings.Replace(string(document(t, p.OpenAPIJSON())), `"in":"header"`, `"in":"head"`, 1)
		}
		p.Transactional = name == "everything"
		for form, text := range map[string][]byte{"JSON": p.OpenAPIJSON(), "embedded": document(t, p.OpenAPIJSON())} {
			if ok, errs := validatorOf(t, text).ValidateDocument(); !ok {
				t.Errorf("%s, %s: %s", name, form, reasons(errs))
			}
		}
	}
	if ok, _ := validatorOf(t, []byte(broken)).ValidateDocument(); ok {
		t.Error("a parameter in \"head\" is valid")
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// The contract covers all responses of the server: a first response, its replay, and
// every refusal that a leased store can give.
func TestResponsesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	a := serve(t, protocol.Config{
		Required: true, Preset: reprise.AtMostOnce, Horizon: time.Hour, Limits: protocol.Limits{RequestBody: 100}, Expires: true, Fingerprint: protocol.Fingerprinting{Func: func(r *protocol.Request, key string, body []byte) (store.Fingerprint, error) {
			if string(body) == `"panic"` {
				panic("a bug")
			}
			return protocol.DefaultFingerprint(r, key, body)
		}},
	})
	seen := map[string]int{}
	want := func(status int, code string, r *http.Request) *httptest.ResponseRecorder {
		t.Helper()
		got, answered, response := a.send(r)
		if got != status || answered != code {
			t.Errorf("answered %d %q, want %d %q", got, answered, status, code)
		}
		seen[answered]++
		return response
	}
	want(201, "", request(t, "first", `{}`))
	if replay := want(201, "", request(t, "first", `{}`)); replay.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("no replay: %v", replay.Header())
	}
	want(422, "key-reused", request(t, "first", `{"other":1}`))
	want(400, "key-missing", request(t, "", `{}`))
	want(400, "key-invalid", request(t, "not a key", `{}`))
	want(413, "request-too-large", request(t, "large", `"`+strings.Repeat("x", 200)+`"`))
	want(500, "internal-error", request(t, "panic", `"panic"`))
	short := request(t, "short", `{}`)
	short.ContentLength = 10
	short.Body = io.NopCloser(io.MultiReader(strings.NewReader("{}"), failing{}))
	want(400, "request-invalid", short)
	nobody := request(t, "nobody", `{}`)
	nobody.Header.Set("X-Tenant", "none")
	want(403, "scope-missing", nobody)
	want(201, "", request(t, "fields", `"fields"`))
	want(409, "result-unavailable", request(t, "fields", `"fields"`))

	done := make(chan struct{})
	go func() {
		defer close(done)
		a.handler.ServeHTTP(httptest.NewRecorder(), request(t, "held", `"hold"`))
	}()
	<-a.held
	want(409, "in-progress", request(t, "held", `"hold"`))
	close(a.release)
	<-done

	unknown := fmt.Errorf("%w: down", store.ErrUnavailable)
	a.faults.Next(faultstore.Claim, slices.Repeat([]faultstore.Fault{faultstore.FailBefore(unknown)}, 100)...)
	want(503, "store-unavailable", request(t, "down", `{}`))
	a.faults.Clear()

	a.faults.Next(faultstore.Claim, faultstore.FailBefore(store.ErrCorrupt))
	want(500, "record-corrupt", request(t, "corrupt", `{}`))
	a.send(request(t, "unknown", `"unknown"`))
	want(409, "outcome-unknown", request(t, "unknown", `"unknown"`))

	a.store.(*memstore.Store).Advance(24 * time.Hour)
	want(409, "result-expired", request(t, "first", `{}`))

	var left []string
	for _, code := range []protocol.Code{
		protocol.CodeKeyMissing, protocol.CodeKeyInvalid, protocol.CodeRequestInvalid, protocol.CodeScopeMissing, protocol.CodeInProgress,
		protocol.CodeOutcomeUnknown, protocol.CodeResultUnavailable, protocol.CodeRequestTooLarge, protocol.CodeKeyReused,
		protocol.CodeResultExpired, protocol.CodeStoreUnavailable, protocol.CodeRecordCorrupt, protocol.CodeInternalError,
	} {
		if seen[string(code)] == 0 {
			left = append(left, string(code))
		}
	}
	if len(left) > 0 {
		t.Errorf("never answered: %q, only %v", left, slices.Sorted(maps.Keys(seen)))
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// The contract of a key in a field of the header, in the body or in the query accepts the
// requests that the server accepts, and refuses those that it refuses.
func TestRequestsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	inBody := func(t *testing.T, value string) *http.Request {
		return request(t, "", `{"meta":{"order/key":`+value+`}}`)
	}
	inQuery := func(t *testing.T, value string) *http.Request {
		r := request(t, "", `{}`)
		r.URL.RawQuery = "request_id=" + url.QueryEscape(strings.Trim(value, `"`))
		r.RequestURI = r.URL.RequestURI()
		return r
	}
	inField := func(t *testing.T, value string) *http.Request {
		return request(t, strings.Trim(value, `"`), `{}`)
	}
	asField := func(t *testing.T, text string) *http.Request { return request(t, text, `{}`) }
	asBody := func(t *testing.T, text string) *http.Request { return request(t, "", text) }
	for name, c := range map[string]struct {
		source        protocol.KeySource
		mode          protocol.KeyMode
		request, with func(t *testing.T, value string) *http.Request
		also          map[string]bool // fields or bodies
	}{
		"header": {protocol.KeyHeader("Idempotency-Key"), protocol.Compat, inField, asField, map[string]bool{
			`"a b, \"c\""`: true, `"a";p=1`: true, `"a`: false,
		}},
		"body": {protocol.KeyField("/meta/order~1key"), protocol.Strict, inBody, asBody, map[string]bool{
			`{}`: false, `{"meta":{}}`: false, `{"meta":7}`: false, `{"meta":{"order/key":7}}`: false, `{"meta":{"order/key":null}}`: false, `{"meta":{"order/key":"b","n":1},"n":1}`: true,
		}},
		"query": {protocol.KeyParam("request_id"), protocol.Strict, inQuery, asBody, map[string]bool{`{}`: false}},
	} {
		a := serve(t, protocol.Config{Required: true, KeyMode: c.mode, Key: c.source})
		check := func(r func() *http.Request, want bool) {
			t.Helper()
			ok, errs := a.checks.ValidateHttpRequest(r())
			status, _, _ := a.send(r())
			if ok != want || (status == http.StatusCreated) != want {
				t.Errorf("%s: the contract says %v (%s), the server %d; want %v", name, ok, reasons(errs), status, want)
			}
		}
		for value, want := range map[string]bool{
			"8e03978e-40d5-43dd-bc93-6894a57f9324": true, "007": true, strings.Repeat("k", 255): true,
			"": false, "a b": false, "a,b": false, strings.Repeat("k", 256): false,
		} {
			check(func() *http.Request { return c.request(t, `"`+value+`"`) }, want)
		}
		for text, want := range c.also {
			check(func() *http.Request { return c.with(t, text) }, want)
		}
	}
}

// Responses outside of the contract are refused, so the checks above can fail.
func TestWrongResponsesAreRefused(t *testing.T) {
	t.Parallel()
	a := serve(t, protocol.Config{Required: true})
	r := request(t, "", `{}`)
	_, _, response := a.send(r)
	good := response.Body.String()
	a.faults.Always(faultstore.Claim, faultstore.FailBefore(fmt.Errorf("%w: down", store.ErrUnavailable)))
	_, _, response = a.send(request(t, "down", `{}`))
	down := response.Body.String()
	for name, c := range map[string]struct {
		status int
		media  string
		body   string
		valid  bool
	}{
		"as it is":                 {400, "application/problem+json", good, true},
		"a code of another status": {409, "application/problem+json", good, false},
		"another title":            {400, "application/problem+json", strings.Replace(good, "missing", "absent", 1), false},
		"another type":             {400, "application/problem+json", strings.Replace(good, "#key-missing", "#key-gone", 1), false},
		"retryable":                {400, "application/problem+json", strings.Replace(good, `"retryable":false`, `"retryable":true`, 1), false},
		"no code":                  {400, "application/problem+json", strings.Replace(good, `"code"`, `"kode"`, 1), false},
		"a status of nobody":       {418, "application/problem+json", good, false},
		"an order without an id":   {201, "application/json", `{}`, false},
		"no time to retry after":   {503, "application/problem+json", down, false},
	} {
		header := http.Header{"Content-Type": {c.media}}
		ok, errs := a.checks.ValidateHttpResponse(r, &http.Response{
			StatusCode: c.status, Header: header, Body: io.NopCloser(strings.NewReader(c.body)), Request: r,
		})
		if ok != c.valid {
			t.Errorf("%s: valid is %v, want %v: %s", name, ok, c.valid, reasons(errs))
		}
	}
}
