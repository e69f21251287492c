package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// mcpTools serves a tool of the Model Context Protocol, which writes, over Streamable
// HTTP.
//
//   - The protocol has no key: a proposal was closed
//     (https://github.com/modelcontextprotocol/modelcontextprotocol/pull/3182). Its _meta
//     may have members that a client and a server agree on, under a prefix in reverse DNS
//     notation (https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta). A
//     client that sets header fields may send Idempotency-Key instead.
//   - The "id" of JSON-RPC and _meta, such as its progress token, differ in each attempt,
//     and are not part of the fingerprint. The tool and its arguments are.
//   - Requests other than calls of a tool that writes pass without a key.
func mcpTools(engine *reprise.Engine, l *ledger) http.Handler {
	guard := must(protocol.Over(engine, protocol.Config{
		Label: "mcp", Required: true, Key: protocol.KeyField("/params/_meta/com.example~1idempotency-key"),
		Skip:        func(ctx context.Context, _ *protocol.Request) bool { return !rpcFrom(ctx).calls("send_invoice") },
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON, Omit: []string{"/id", "/params/_meta"}},
		Problems:    protocol.ProblemFormat{Write: mcpProblem},
	}))
	return renumbered(reprisehttp.Middleware(guard, client)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rpcFrom(r.Context()).calls("send_invoice") {
			respond(w, http.StatusOK, toolResponse(false, fmt.Sprintf("invoice %d is sent", l.add()), nil))
			return
		}
		noSuchTool(w)
	})), func(http.Header, *rpcResponse) {})
}

func noSuchTool(w http.ResponseWriter) {
	respond(w, http.StatusNotFound, rpcError(-32601, "There is no such method or tool.", nil))
}

// mcpProblem writes a refusal as an error of JSON-RPC: invalid parameters, or an error of
// the server. Its data has the code of the problem.
func mcpProblem(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	code := -32000
	if slices.Contains([]protocol.Code{protocol.CodeKeyMissing, protocol.CodeKeyInvalid, protocol.CodeKeyReused}, p.Code) {
		code = -32602
	}
	return refusal(p.Status, rpcError(code, p.Detail, map[string]any{"code": p.Code, "retryable": p.Retryable}))
}

// adcpSeller is a seller of the Ad Context Protocol, over MCP. It keeps these rules of
// https://github.com/adcontextprotocol/adcp/blob/main/docs/building/by-layer/L1/security.mdx
//
//   - The key is the argument "idempotency_key". It is required, and its form is checked
//     before the record is looked up. It belongs to the agent and the account.
//   - Four members of the arguments are not part of the fingerprint, nor is the envelope
//     of MCP.
//   - Only a success is kept. Errors have status 200 and isError, so Decide reads the
//     body.
//   - A retry waits for the first call, and gets its payload with replayed: true.
//   - A key is remembered longer than its response; a retry then gets
//     IDEMPOTENCY_EXPIRED.
func adcpSeller(engine *reprise.Engine, l *ledger) http.Handler {
	guard := must(protocol.Over(engine, protocol.Config{
		Label: "adcp", Required: true, Key: protocol.KeyField("/params/arguments/idempotency_key"),
		Retention: adcpReplays, Horizon: 6 * adcpReplays, Wait: 10 * time.Second,
		Keep: protocol.Keeping{Decide: adcpDecision}, Problems: protocol.ProblemFormat{Write: adcpProblem},
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON, Omit: []string{
			"/id", "/params/_meta", "/params/arguments/context", "/params/arguments/governance_context",
			"/params/arguments/push_notification_config/authentication/credentials",
		}},
	}))
	buy := reprisehttp.Middleware(guard, buyer)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := l.add()
		if mediaBuyOf(r).Budget < 100 {
			respond(w, http.StatusOK, adcpFailure("BUDGET_TOO_LOW", "The budget is below 100.", "correctable", 0))
			return
		}
		payload := map[string]string{"media_buy_id": fmt.Sprint("mb_", n)}
		respond(w, http.StatusOK, toolResponse(false, "The media buy is booked.", map[string]any{"status": "completed", "payload": payload}))
	}))
	return renumbered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !rpcFrom(r.Context()).calls("create_media_buy"):
			noSuchTool(w)
		case !adcpKeys.MatchString(mediaBuyOf(r).Key):
			respond(w, http.StatusOK, adcpFailure("INVALID_REQUEST", "idempotency_key needs 16 to 255 characters of A-Za-z0-9_.:-", "correctable", 0))
		default:
			buy.ServeHTTP(w, r)
		}
	}), func(h http.Header, out *rpcResponse) {
		if h.Get(protocol.FieldReplayed) == "true" {
			markReplayed(out)
		}
	})
}

// adcpReplays is the replay_ttl_seconds that the seller declares as a capability.
const adcpReplays = 24 * time.Hour

var adcpKeys = regexp.MustCompile(`^[A-Za-z0-9_.:-]{16,255}$`)

// mediaBuy has the arguments of create_media_buy that the example reads.
type mediaBuy struct {
	Key     string `json:"idempotency_key"`
	Account struct {
		ID string `json:"account_id"`
	} `json:"account"`
	Budget int64 `json:"total_budget"`
}

func mediaBuyOf(r *http.Request) (in mediaBuy) {
	_ = json.Unmarshal(rpcFrom(r.Context()).Params.Arguments, &in) // unreadable members stay empty, and are refused
	return in
}

// buyer is the scope of a key: the agent together with the account.
func buyer(r *http.Request) (string, error) {
	agent, err := client(r)
	account := mediaBuyOf(r).Account.ID
	if account == "" {
		err = cmp.Or(err, errors.New("there is no account"))
	}
	return fmt.Sprintf("%q %q", agent, account), err
}

// adcpDecision releases the key of a call that failed. The body of a failure is short;
// one that is longer than its head does not parse, and its response is kept.
func adcpDecision(e protocol.Ending) protocol.Decision {
	var out struct{ Result struct{ IsError bool } }
	if json.Unmarshal(e.Head, &out) == nil && out.Result.IsError {
		return protocol.ReleaseKey
	}
	return protocol.ByPreset
}

// markReplayed sets replayed in the envelope, which describes this response; the payload
// inside is the recorded one.
func markReplayed(out *rpcResponse) {
	var result, envelope map[string]json.RawMessage
	if json.Unmarshal(out.Result, &result) == nil && json.Unmarshal(result["structuredContent"], &envelope) == nil {
		envelope["replayed"] = json.RawMessage("true")
		result["structuredContent"] = must(json.Marshal(envelope))
		out.Result = must(json.Marshal(result))
	}
}

// adcpProblem writes a refusal as an error of the tool
// (https://github.com/adcontextprotocol/adcp/blob/main/docs/building/operating/transport-errors.mdx).
func adcpProblem(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	code, correctable := map[protocol.Code]string{
		protocol.CodeKeyMissing: "INVALID_REQUEST", protocol.CodeKeyInvalid: "INVALID_REQUEST", protocol.CodeRequestInvalid: "INVALID_REQUEST",
		protocol.CodeRequestTooLarge: "INVALID_REQUEST", protocol.CodeScopeMissing: "AUTH_MISSING", protocol.CodeKeyReused: "IDEMPOTENCY_CONFLICT",
		protocol.CodeResultExpired: "IDEMPOTENCY_EXPIRED",
	}[p.Code]
	recovery := "terminal"
	switch {
	case correctable:
		recovery = "correctable"
	case p.Retryable:
		recovery = "transient"
	}
	if p.Code == protocol.CodeInProgress {
		code = "IDEMPOTENCY_IN_FLIGHT"
	}
	return refusal(http.StatusOK, adcpFailure(cmp.Or(code, "SERVICE_UNAVAILABLE"), p.Detail, recovery, p.RetryAfter))
}

// adcpFailure returns an error of the tool. It repeats the error in the text, because
// most hosts look there.
func adcpFailure(code, message, recovery string, wait time.Duration) rpcResponse {
	e := map[string]any{"code": code, "message": message, "recovery": recovery}
	if wait > 0 {
		seconds := math.Ceil(wait.Seconds())
		e["retry_after"], e["details"] = seconds, map[string]float64{"retry_after": seconds}
	}
	text := must(json.Marshal(map[string]any{"adcp_error": e}))
	return toolResponse(true, string(text), map[string]any{"adcp_error": e, "errors": []any{e}})
}
