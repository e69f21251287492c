package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// mcpTools serves two tools of the Model Context Protocol over Streamable HTTP, of which
// one writes.
//
//   - The protocol has no key: a proposal was closed
//     (https://github.com/modelcontextprotocol/modelcontextprotocol/pull/3182). Its _meta
//     may have members that a client and a server agree on, under a prefix in reverse DNS
//     notation (https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta). A
//     client that sets header fields may send Idempotency-Key instead.
//   - The "id" of JSON-RPC and _meta, such as its progress token, differ in each attempt,
//     and are not part of the fingerprint. The tool and its arguments are.
//   - A replay has the result of the first call, and the ID of the retry: see
//     [renumbered].
//   - Requests other than calls of a tool that writes pass without a key.
func mcpTools(engine *reprise.Engine, l *ledger) http.Handler {
	guard := must(protocol.Over(engine, protocol.Config{
		Name: "mcp", Required: true, Key: protocol.KeyField("/params/_meta/com.example~1idempotency-key"),
		Skip:        func(ctx context.Context, _ *protocol.Request) bool { return !rpcFrom(ctx).calls("send_invoice") },
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON, Omit: []string{"/id", "/params/_meta"}},
		Problems:    protocol.ProblemFormat{Write: mcpProblem},
	}))
	return renumbered(reprisehttp.Middleware(guard, client)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch in := rpcFrom(r.Context()); {
		case in.calls("send_invoice"):
			number := l.add("invoice " + string(in.Params.Arguments))
			respond(w, http.StatusOK, toolResponse(false, fmt.Sprintf("invoice %d is sent", number), nil))
		case in.calls("count_invoices"):
			respond(w, http.StatusOK, toolResponse(false, strconv.Itoa(l.count()), nil))
		default:
			respond(w, http.StatusNotFound, rpcResponse{Version: "2.0", Error: &rpcError{Code: -32601, Message: "There is no such method or tool."}})
		}
	})), nil)
}

// mcpProblem writes a refusal as an error of JSON-RPC: invalid parameters, or an error of
// the server. Its data has the code of the problem.
func mcpProblem(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	e := rpcError{Message: p.Detail, Data: map[string]any{"code": p.Code, "retryable": p.Retryable}}
	switch p.Code {
	case protocol.CodeKeyMissing, protocol.CodeKeyInvalid, protocol.CodeKeyReused:
		e.Code = -32602
	default:
		e.Code = -32000
	}
	return refusal(p.Status, rpcResponse{Version: "2.0", Error: &e})
}
