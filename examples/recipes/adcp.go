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
	"time"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

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
		Name: "adcp", Required: true, Key: protocol.KeyField("/params/arguments/idempotency_key"),
		Retention: adcpReplays, Horizon: 6 * adcpReplays, Wait: 10 * time.Second,
		Keep: protocol.Keeping{Decide: adcpDecision}, Problems: protocol.ProblemFormat{Write: adcpProblem},
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON, Omit: []string{
			"/id", "/params/_meta", "/params/arguments/context", "/params/arguments/governance_context",
			"/params/arguments/push_notification_config/authentication/credentials",
		}},
	}))
	replayed := guard.ControlFields().Replayed
	buy := reprisehttp.Middleware(guard, buyer)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if in := mediaBuyOf(r); in.Budget < 100 {
			l.add("refusal of " + in.Account.ID)
			respond(w, http.StatusOK, adcpFailure("BUDGET_TOO_LOW", "The budget is below 100.", "correctable", 0))
			return
		}
		id := fmt.Sprint("mb_", l.add("media buy"))
		payload := map[string]any{"status": "completed", "payload": map[string]string{"media_buy_id": id}}
		respond(w, http.StatusOK, toolResponse(false, "The media buy "+id+" is booked.", payload))
	}))
	return renumbered(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch in := rpcFrom(r.Context()); {
		case !in.calls("create_media_buy"):
			respond(w, http.StatusNotFound, rpcResponse{Version: "2.0", Error: &rpcError{Code: -32601, Message: "There is no such method or tool."}})
		case !adcpKeys.MatchString(mediaBuyOf(r).Key):
			respond(w, http.StatusOK, adcpFailure("INVALID_REQUEST", "idempotency_key needs 16 to 255 characters of A-Za-z0-9_.:-", "correctable", 0))
		default:
			buy.ServeHTTP(w, r)
		}
	}), func(h http.Header, out *rpcResponse) {
		if h.Get(replayed) == "true" {
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
	var result map[string]json.RawMessage
	var envelope map[string]json.RawMessage
	if json.Unmarshal(out.Result, &result) == nil && json.Unmarshal(result["structuredContent"], &envelope) == nil {
		envelope["replayed"] = json.RawMessage("true")
		result["structuredContent"] = must(json.Marshal(envelope))
		out.Result = must(json.Marshal(result))
	}
}

// adcpProblem writes a refusal as an error of the tool
// (https://github.com/adcontextprotocol/adcp/blob/main/docs/building/operating/transport-errors.mdx).
func adcpProblem(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	var code string
	recovery := "terminal"
	if p.Retryable {
		recovery = "transient"
	}
	switch p.Code {
	case protocol.CodeKeyMissing, protocol.CodeKeyInvalid, protocol.CodeRequestInvalid, protocol.CodeRequestTooLarge:
		code, recovery = "INVALID_REQUEST", "correctable"
	case protocol.CodeScopeMissing:
		code, recovery = "AUTH_MISSING", "correctable"
	case protocol.CodeKeyReused:
		code, recovery = "IDEMPOTENCY_CONFLICT", "correctable"
	case protocol.CodeResultExpired:
		code, recovery = "IDEMPOTENCY_EXPIRED", "correctable"
	case protocol.CodeInProgress:
		code = "IDEMPOTENCY_IN_FLIGHT"
	default:
		code = "SERVICE_UNAVAILABLE"
	}
	return refusal(http.StatusOK, adcpFailure(code, p.Detail, recovery, p.RetryAfter))
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
