package main

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

func squareBody(key, amount string) string {
	return `{"idempotency_key":"` + key + `","source_id":"cnon:card-nonce-ok","amount_money":{"amount":` + amount + `,"currency":"EUR"}}`
}

func TestSquarePaymentIsTakenOnce(t *testing.T) {
	t.Parallel()
	const key = "7b0f3ec5-086a-4871-8f13-3c81b3875218"
	s := startBlocked(t)
	pay := func(body string) answer {
		return s.post("/v2/payments", body, "Authorization", "Bearer merchant", "Square-Version", "2026-10-15")
	}
	first := s.begin(func() answer { return pay(squareBody(key, "500")) })
	s.want(pay(squareBody(key, "500")), 409, false, `"code":"CONFLICT"`)
	s.finish()
	s.want(<-first, 200, false, `"id":"payment_1"`)
	s.want(pay(squareBody(key, "500")), 200, true, `"id":"payment_1"`)
	s.want(pay(squareBody(key, "501")), 400, false, `"category":"INVALID_REQUEST_ERROR"`, `"code":"IDEMPOTENCY_KEY_REUSED"`)
	s.want(pay(`{"source_id":"CASH"}`), 400, false, `"code":"MISSING_REQUIRED_PARAMETER"`)
	s.want(pay(squareBody(strings.Repeat("k", 46), "500")), 400, false, `"code":"INVALID_VALUE"`)
	s.want(pay(`{"idempotency_key":7,"source_id":"CASH"}`), 400, false, `"code":"INVALID_VALUE"`)
	s.want(s.post("/v2/payments", squareBody(key, "500")), 401, false, `"category":"AUTHENTICATION_ERROR"`)
	s.ran(1)
}

// A payment that may have been taken is not refused as a request that is wrong.
func TestSquarePaymentOfUnknownOutcomeConflicts(t *testing.T) {
	t.Parallel()
	r := squareProblem(t.Context(), nil, protocol.CodeOutcomeUnknown.Problem())
	if r.Status != 409 || !strings.Contains(string(r.Body), `"code":"CONFLICT"`) {
		t.Errorf("%d %s, want 409 with CONFLICT", r.Status, r.Body)
	}
}
