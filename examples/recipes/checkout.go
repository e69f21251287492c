package main

import (
	"cmp"
	"context"
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
func acpCheckout(mux *http.ServeMux, engine *reprise.Engine, l *ledger) {
	guard := must(protocol.Over(engine, protocol.Config{
		Label: "acp", Required: true, Problems: protocol.ProblemFormat{Write: acpProblem},
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON},
	}))
	handle := func(pattern, endpoint string, status int, answer func(id string, number int64) any) {
		own := must(guard.With(func(c *protocol.Config) { c.Endpoint = endpoint }))
		mux.Handle(pattern, reprisehttp.Middleware(own, client)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			respond(w, status, answer(r.PathValue("id"), l.add()))
		})))
	}
	handle("POST /checkout_sessions", "create", http.StatusCreated, func(_ string, n int64) any {
		return map[string]string{"id": fmt.Sprint("checkout_session_", n), "status": "ready_for_payment", "currency": "eur"}
	})
	handle("POST /checkout_sessions/{id}/complete", "complete", http.StatusOK, func(id string, n int64) any {
		return map[string]any{"id": id, "status": "completed", "order": map[string]string{"id": fmt.Sprint("order_", n), "checkout_session_id": id}}
	})
}

// acpProblem writes a refusal as the protocol has it: one object, not a list. The guard
// adds the Retry-After of idempotency_in_flight.
func acpProblem(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	kind := "invalid_request"
	if p.Status >= http.StatusInternalServerError {
		kind = "service_unavailable"
	}
	code := map[protocol.Code]string{
		protocol.CodeKeyMissing: "idempotency_key_required", protocol.CodeInProgress: "idempotency_in_flight", protocol.CodeKeyReused: "idempotency_conflict",
	}[p.Code]
	return refusal(p.Status, map[string]string{"type": kind, "code": cmp.Or(code, string(p.Code)), "message": p.Detail})
}

// squarePayments takes payments as the CreatePayment of Square does
// (https://developer.squareup.com/docs/build-basics/common-api-patterns/idempotency).
//
//   - The key is "idempotency_key" of the body, required, of up to 45 characters:
//     https://developer.squareup.com/reference/square/payments-api/create-payment
//   - The same key with another body is refused with the code IDEMPOTENCY_KEY_REUSED.
func squarePayments(engine *reprise.Engine, l *ledger) http.Handler {
	guard := must(protocol.Over(engine, protocol.Config{
		Label: "square", Required: true, Key: protocol.KeyField("/idempotency_key"), Limits: protocol.Limits{Key: 45},
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON}, Problems: protocol.ProblemFormat{Write: squareProblem},
	}))
	return reprisehttp.Middleware(guard, client)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]any{"payment": map[string]string{"id": fmt.Sprint("payment_", l.add()), "status": "COMPLETED"}})
	}))
}

// squareProblem writes a refusal with the codes of Square
// (https://developer.squareup.com/reference/square/enums/ErrorCode). A payment that runs,
// or that may have been taken, conflicts: it is not refused as a request that is wrong.
func squareProblem(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	type form struct {
		status         int
		category, code string
	}
	as, known := map[protocol.Code]form{
		protocol.CodeKeyMissing:   {400, "INVALID_REQUEST_ERROR", "MISSING_REQUIRED_PARAMETER"},
		protocol.CodeKeyInvalid:   {400, "INVALID_REQUEST_ERROR", "INVALID_VALUE"},
		protocol.CodeKeyReused:    {400, "INVALID_REQUEST_ERROR", "IDEMPOTENCY_KEY_REUSED"},
		protocol.CodeScopeMissing: {401, "AUTHENTICATION_ERROR", "UNAUTHORIZED"},
	}[p.Code]
	switch {
	case known:
	case p.Status >= http.StatusInternalServerError:
		as = form{p.Status, "API_ERROR", "SERVICE_UNAVAILABLE"}
	case p.Status == http.StatusConflict:
		as = form{p.Status, "INVALID_REQUEST_ERROR", "CONFLICT"}
	default:
		as = form{p.Status, "INVALID_REQUEST_ERROR", "BAD_REQUEST"}
	}
	return refusal(as.status, map[string]any{"errors": []map[string]string{{"category": as.category, "code": as.code, "detail": p.Detail}}})
}
