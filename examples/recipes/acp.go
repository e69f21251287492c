package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// acpCheckout adds a merchant's part of the Agentic Commerce Protocol, version
// 2026-04-17, to mux. Its rules for keys are at
// https://github.com/agentic-commerce-protocol/agentic-commerce-protocol/issues/120
//
//   - Every POST needs an Idempotency-Key. A key belongs to an identity and an endpoint,
//     so each route has an Endpoint.
//   - Bodies are compared as JSON. Request-Id, Timestamp and Signature, which differ from
//     attempt to attempt, are fields of the header and do not count.
//   - A replay has the status of the first response and Idempotent-Replayed: true, and a
//     5xx is never kept. Both are the defaults of a guard.
//   - Refusals have the protocol's own form: see [acpProblem].
func acpCheckout(mux *http.ServeMux, engine *reprise.Engine, l *ledger) {
	guard := must(protocol.Over(engine, protocol.Config{
		Name: "acp", Required: true, Problems: protocol.ProblemFormat{Write: acpProblem},
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON},
	}))
	handle := func(pattern, endpoint string, h http.HandlerFunc) {
		own := must(guard.With(func(c *protocol.Config) { c.Endpoint = endpoint }))
		mux.Handle(pattern, reprisehttp.Middleware(own, client)(h))
	}
	handle("POST /checkout_sessions", "create", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Items []struct {
				ID       string
				Quantity int
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Items) == 0 {
			respond(w, http.StatusBadRequest, acpError{"invalid_request", "missing", "The session needs items."})
			return
		}
		id := fmt.Sprint("checkout_session_", l.add("session"))
		respond(w, http.StatusCreated, map[string]any{"id": id, "status": "ready_for_payment", "currency": "eur"})
	})
	handle("POST /checkout_sessions/{id}/complete", "complete", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		order := fmt.Sprint("order_", l.add("order of "+id))
		respond(w, http.StatusOK, map[string]any{
			"id": id, "status": "completed", "order": map[string]string{"id": order, "checkout_session_id": id, "permalink_url": "https://shop.example/" + order},
		})
	})
}

// acpError is an error of the protocol: one object, not a list.
type acpError struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// acpProblem writes a refusal as the protocol has it: 400 idempotency_key_required, 409
// idempotency_in_flight, whose Retry-After the guard adds, and 422 idempotency_conflict.
func acpProblem(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	e := acpError{Type: "invalid_request", Message: p.Detail}
	switch p.Code {
	case protocol.CodeKeyMissing:
		e.Code = "idempotency_key_required"
	case protocol.CodeInProgress:
		e.Code = "idempotency_in_flight"
	case protocol.CodeKeyReused:
		e.Code = "idempotency_conflict"
	default:
		e.Code = string(p.Code)
		if p.Status >= http.StatusInternalServerError {
			e.Type = "service_unavailable"
		}
	}
	return refusal(p.Status, e)
}

// refusal returns a response of a policy, in JSON.
func refusal(status int, value any) protocol.Response {
	return protocol.Response{
		Status: status, Body: must(json.Marshal(value)),
		Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "application/json"}),
	}
}
