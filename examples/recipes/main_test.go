package main

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/servers"
)

// call is a request in JSON, and its response: the status, whether it is a replay, and
// parts of its body.
type call struct {
	path, body string
	fields     map[string]string
	status     int
	replayed   bool
	parts      []string
}

func acp(path, body, agent, key string, status int, replayed bool, parts ...string) call {
	fields := map[string]string{"Authorization": "Bearer " + agent, "Api-Version": "2026-04-17", "Request-Id": "of each attempt"}
	if key != "" {
		fields["Idempotency-Key"] = key
	}
	return call{path, body, fields, status, replayed, parts}
}

func square(body string, status int, replayed bool, parts ...string) call {
	return call{"/v2/payments", body, map[string]string{"Authorization": "Bearer merchant", "Square-Version": "2026-10-15"}, status, replayed, parts}
}

// tool calls a tool over Streamable HTTP. Each response has the ID of its own request.
func tool(path, id, name, meta, arguments string, status int, replayed bool, parts ...string) call {
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `,"_meta":{"progressToken":` + id + meta + `}}}`
	fields := map[string]string{"Authorization": "Bearer agent", "Accept": "application/json, text/event-stream", "Mcp-Method": "tools/call", "Mcp-Name": name}
	return call{path, body, fields, status, replayed, append(parts, `"jsonrpc":"2.0","id":`+id+`,`)}
}

// buy calls create_media_buy of AdCP.
func buy(id, key, account, budget string, replayed bool, parts ...string) call {
	arguments := `{"idempotency_key":"` + key + `","account":{"account_id":"` + account + `"},"total_budget":` + budget + `,"context":{"correlation_id":"` + id + `"}}`
	return tool("/adcp", id, "create_media_buy", "", arguments, 200, replayed, parts...)
}

func graphql(key, query, variables string, status int, replayed bool, parts ...string) call {
	fields := map[string]string{"Authorization": "Bearer ada", "Accept": "application/graphql-response+json"}
	if key != "" {
		fields["Idempotency-Key"] = key
	}
	return call{"/graphql", `{"query":"` + query + `","variables":` + variables + `}`, fields, status, replayed, parts}
}

// Each format has its own key, fingerprint, refusals, and responses that are not kept.
func TestEachFormat(t *testing.T) {
	t.Parallel()
	const (
		items    = `{"items":[{"id":"item_456","quantity":1}]}`
		invoice  = `{"to":"ada","amount":5}`
		meta     = `,"com.example/idempotency-key":"4f1c"`
		media    = "0b8a3c1e-77a5-4a7e-9a52-2f3f5f1f9d11"
		mutation = `mutation($a: String!, $b: String) { a: placeOrder(item: $a) { order } b: placeOrder(item: $b) { order } }`
		payment  = `{"idempotency_key":"7b0f","source_id":"CASH","amount_money":{"amount":500,"currency":"EUR"}}`
	)
	for name, recipe := range map[string]struct {
		effects int64
		calls   []call
	}{
		"ACP": {3, []call{
			acp("/checkout_sessions", items, "agent", "8d9d", 201, false, "checkout_session_1"),
			acp("/checkout_sessions", `{ "items": [{"quantity":1,"id":"item_456"}] }`, "agent", "8d9d", 201, true, "checkout_session_1"),
			acp("/checkout_sessions", `{"items":[]}`, "agent", "8d9d", 422, false, `"type":"invalid_request"`, `"code":"idempotency_conflict"`),
			acp("/checkout_sessions", items, "agent", "", 400, false, `"type":"invalid_request"`, `"code":"idempotency_key_required"`),
			acp("/checkout_sessions", items, "another agent", "8d9d", 201, false, "checkout_session_2"),
			acp("/checkout_sessions/s_1/complete", items, "agent", "8d9d", 200, false, `"id":"order_3"`), // a key belongs to the endpoint
			acp("/checkout_sessions/s_1/complete", items, "agent", "8d9d", 200, true, `"id":"order_3"`),
		}},
		"Square": {1, []call{
			square(payment, 200, false, `"id":"payment_1"`),
			square(payment, 200, true, `"id":"payment_1"`),
			square(strings.Replace(payment, "500", "501", 1), 400, false, `"category":"INVALID_REQUEST_ERROR"`, `"code":"IDEMPOTENCY_KEY_REUSED"`),
			square(`{"source_id":"CASH"}`, 400, false, `"code":"MISSING_REQUIRED_PARAMETER"`),
			square(strings.Replace(payment, "7b0f", strings.Repeat("k", 46), 1), 400, false, `"code":"INVALID_VALUE"`),
			{"/v2/payments", payment, nil, 401, false, []string{`"category":"AUTHENTICATION_ERROR"`}},
		}},
		"MCP": {1, []call{
			tool("/mcp", "1", "send_invoice", meta, invoice, 200, false, "invoice 1 is sent"),
			tool("/mcp", "2", "send_invoice", meta, `{"amount":5,"to":"ada"}`, 200, true, "invoice 1 is sent"),
			tool("/mcp", `"a string"`, "send_invoice", meta, invoice, 200, true, "invoice 1 is sent"),
			tool("/mcp", "4", "send_invoice", meta, `{"to":"bob"}`, 422, false, `"code":-32602`, "key-reused"),
			tool("/mcp", "5", "send_invoice", "", invoice, 400, false, `"code":-32602`, "key-missing"),
			tool("/mcp", "6", "no_such_tool", "", `{}`, 404, false, `"code":-32601`),
			{"/mcp", `[]`, nil, 400, false, []string{`"code":-32700`}},
		}},
		"AdCP": {4, []call{
			buy("1", media, "acc_1", "500", false, `"media_buy_id":"mb_1"`),
			buy("2", media, "acc_1", "500", true, `"media_buy_id":"mb_1"`, `"replayed":true`),
			buy("3", media, "acc_1", "501", false, `"isError":true`, `"code":"IDEMPOTENCY_CONFLICT"`),
			buy("4", "too-short", "acc_1", "500", false, `"code":"INVALID_REQUEST"`),
			buy("5", media, "", "500", false, `"code":"AUTH_MISSING"`),
			buy("6", media, "acc_2", "99", false, `"isError":true`, `"code":"BUDGET_TOO_LOW"`), // a 200 that is not kept
			buy("7", media, "acc_2", "99", false, `"isError":true`, `"code":"BUDGET_TOO_LOW"`),
			buy("8", media, "acc_2", "100", false, `"media_buy_id":"mb_4"`),
		}},
		"GraphQL": {6, []call{
			graphql("k", mutation, `{"a":"a book"}`, 200, false, `{"data":{"a":{"order":1}}}`),
			graphql("k", mutation, `{"a":"a book"}`, 200, true, `{"data":{"a":{"order":1}}}`),
			graphql("k", mutation, `{"a":"a pen"}`, 422, false, "key-reused"),
			graphql("", mutation, `{"a":"a book"}`, 400, false, `"errors"`),
			graphql("", `{ shop }`, `{}`, 200, false, `"data"`),
			graphql("failed", mutation, `{"a":"sold out"}`, 200, false, `"data":{"a":null}`, `"errors"`),
			graphql("failed", mutation, `{"a":"sold out"}`, 200, false, `"data":{"a":null}`, `"errors"`),
			graphql("partly", mutation, `{"a":"a book","b":"sold out"}`, 200, false, `"b":null`, `"errors"`),
			graphql("partly", mutation, `{"a":"a book","b":"sold out"}`, 200, true, `"b":null`, `"errors"`), // a part has succeeded
			graphql("", `mutation`, `7`, 400, false, `"errors"`),
			graphql("another", mutation, `{"a":"a book"}`, 200, false, `{"order":6}`),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, recipe.effects, recipe.calls...)
		})
	}
}

// run sends the calls to a service, one after the other, and compares the responses and
// the number of effects.
func run(t *testing.T, effects int64, calls ...call) {
	t.Helper()
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	servers.Must(t, err)
	l := new(ledger)
	server := httptest.NewServer(newAPI(engine, l))
	t.Cleanup(func() {
		server.Close()
		servers.Must(t, engine.Close(context.WithoutCancel(t.Context())))
	})
	for i, c := range calls {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+c.path, strings.NewReader(c.body))
		servers.Must(t, err)
		r.Header.Set("Content-Type", "application/json")
		for name := range maps.Keys(c.fields) {
			r.Header.Set(name, c.fields[name])
		}
		res, err := server.Client().Do(r)
		servers.Must(t, err)
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if replayed := res.Header.Get("Idempotent-Replayed") == "true"; err != nil || res.StatusCode != c.status || replayed != c.replayed {
			t.Errorf("call %d: %d %s, replayed %v, %v; want %d, %v", i+1, res.StatusCode, body, replayed, err, c.status, c.replayed)
		}
		for _, part := range c.parts {
			if !strings.Contains(string(body), part) {
				t.Errorf("call %d: the body is %s, without %s", i+1, body, part)
			}
		}
	}
	if got := l.effects.Load(); got != effects {
		t.Errorf("%d effects, want %d", got, effects)
	}
}

// The refusals that no call above gets.
func TestEachProblem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		write  func(context.Context, *protocol.Request, protocol.Problem) protocol.Response
		code   protocol.Code
		status int
		parts  []string
	}{
		{acpProblem, protocol.CodeInProgress, 409, []string{`"type":"invalid_request"`, `"code":"idempotency_in_flight"`}},
		{acpProblem, protocol.CodeStoreUnavailable, 503, []string{`"type":"service_unavailable"`}},
		{squareProblem, protocol.CodeInProgress, 409, []string{`"code":"CONFLICT"`}},
		{squareProblem, protocol.CodeOutcomeUnknown, 409, []string{`"code":"CONFLICT"`}}, // it may have been taken
		{squareProblem, protocol.CodeStoreUnavailable, 503, []string{"API_ERROR", "SERVICE_UNAVAILABLE"}},
		{mcpProblem, protocol.CodeInProgress, 409, []string{`"code":-32000`, "in-progress"}},
		{adcpProblem, protocol.CodeInProgress, 200, []string{"IDEMPOTENCY_IN_FLIGHT", "transient", `"retry_after":1`}},
		{adcpProblem, protocol.CodeResultExpired, 200, []string{"IDEMPOTENCY_EXPIRED", "correctable"}},
		{adcpProblem, protocol.CodeStoreUnavailable, 200, []string{"SERVICE_UNAVAILABLE", "transient"}},
		{adcpProblem, protocol.CodeOutcomeUnknown, 200, []string{"SERVICE_UNAVAILABLE", "terminal"}},
	} {
		r := c.write(t.Context(), nil, c.code.Problem())
		for _, part := range c.parts {
			if r.Status != c.status || !strings.Contains(string(r.Body), part) {
				t.Errorf("%s: %d %s, want %d %s", c.code, r.Status, r.Body, c.status, part)
			}
		}
	}
}

func TestGraphQLDecision(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]protocol.Decision{
		``:                                        protocol.ByPreset,
		`{"errors":[],"data":null}`:               protocol.ByPreset,
		`{"errors":[{"message":"no"}]}`:           protocol.ReleaseKey,
		`{"data":null,"errors":[{}]}`:             protocol.ByPreset, // a result that cannot be null may hide one that succeeded
		`{"data":{"a":null},"errors":[{}]}`:       protocol.ReleaseKey,
		`{"data":{"a":null,"b":0},"errors":[{}]}`: protocol.ByPreset,
		`{"errors":[{}],"data":{"a":"` + strings.Repeat("x", 4000): protocol.ByPreset, // longer than the head
	} {
		if got := graphqlDecision(protocol.Ending{Status: 200, Head: []byte(head)}); got != want {
			t.Errorf("%.60s: %v, want %v", head, got, want)
		}
	}
}
