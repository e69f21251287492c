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

// squarePayments takes payments as the CreatePayment of Square does
// (https://developer.squareup.com/docs/build-basics/common-api-patterns/idempotency).
//
//   - The key is "idempotency_key" of the body, required, of up to 45 characters:
//     https://developer.squareup.com/reference/square/payments-api/create-payment
//   - The same key with another body is refused with the code IDEMPOTENCY_KEY_REUSED.
//   - Refusals have Square's form: see [squareProblem].
func squarePayments(engine *reprise.Engine, l *ledger) http.Handler {
	guard := must(protocol.Over(engine, protocol.Config{
		Name: "square", Required: true, Key: protocol.KeyField("/idempotency_key"), Limits: protocol.Limits{Key: 45},
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON}, Problems: protocol.ProblemFormat{Write: squareProblem},
	}))
	return reprisehttp.Middleware(guard, client)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			SourceID    string `json:"source_id"`
			AmountMoney struct {
				Amount   int64  `json:"amount"`
				Currency string `json:"currency"`
			} `json:"amount_money"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.SourceID == "" {
			respond(w, http.StatusBadRequest, squareErrors("INVALID_REQUEST_ERROR", "MISSING_REQUIRED_PARAMETER", "The payment needs a source_id."))
			return
		}
		id := fmt.Sprint("payment_", l.add(fmt.Sprint("payment of ", in.AmountMoney.Amount, in.AmountMoney.Currency)))
		respond(w, http.StatusOK, map[string]any{"payment": map[string]any{"id": id, "status": "COMPLETED", "amount_money": in.AmountMoney}})
	}))
}

// squareProblem writes a refusal with the codes of Square
// (https://developer.squareup.com/reference/square/enums/ErrorCode).
func squareProblem(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	category, code, status := "INVALID_REQUEST_ERROR", "BAD_REQUEST", p.Status
	switch p.Code {
	case protocol.CodeKeyMissing:
		code = "MISSING_REQUIRED_PARAMETER"
	case protocol.CodeKeyInvalid:
		code = "INVALID_VALUE"
	case protocol.CodeKeyReused:
		code, status = "IDEMPOTENCY_KEY_REUSED", http.StatusBadRequest
	case protocol.CodeScopeMissing:
		category, code, status = "AUTHENTICATION_ERROR", "UNAUTHORIZED", http.StatusUnauthorized
	default:
		switch {
		case p.Status >= http.StatusInternalServerError:
			category, code = "API_ERROR", "SERVICE_UNAVAILABLE"
		case p.Status == http.StatusConflict: // the payment is running, or may have been taken
			code = "CONFLICT"
		}
	}
	return refusal(status, squareErrors(category, code, p.Detail))
}

func squareErrors(category, code, detail string) any {
	return map[string]any{"errors": []map[string]string{{"category": category, "code": code, "detail": detail}}}
}
