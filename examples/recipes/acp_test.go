package main

import "testing"

const acpItems = `{"items":[{"id":"item_456","quantity":1}],"buyer":{"first_name":"Ada"}}`

// checkout sends a POST of the Agentic Commerce Protocol.
func (s *service) checkout(path, body, agent, key, request string) answer {
	s.Helper()
	fields := []string{"Authorization", "Bearer " + agent, "API-Version", "2026-04-17", "Request-Id", request, "Timestamp", "2026-11-23T12:00:0" + request + "Z"}
	if key != "" {
		fields = append(fields, "Idempotency-Key", key)
	}
	return s.post(path, body, fields...)
}

func TestACPSessionIsCreatedOnce(t *testing.T) {
	t.Parallel()
	const path, key = "/checkout_sessions", "8d9d7e0a-5bd6-4a4e-9a3c-6a6d0b7c1f10"
	s := startBlocked(t)
	first := s.begin(func() answer { return s.checkout(path, acpItems, "agent", key, "1") })
	flight := s.checkout(path, acpItems, "agent", key, "2")
	s.want(flight, 409, false, `"type":"invalid_request"`, `"code":"idempotency_in_flight"`)
	if flight.header.Get("Retry-After") == "" {
		t.Error("409 without Retry-After")
	}
	s.finish()
	s.want(<-first, 201, false, "checkout_session_1")
	s.want(s.checkout(path, `{ "buyer": {"first_name":"Ada"}, "items": [{"quantity":1,"id":"item_456"}] }`, "agent", key, "3"), 201, true, "checkout_session_1")
	s.want(s.checkout(path, `{"items":[{"id":"item_456","quantity":2}]}`, "agent", key, "4"), 422, false, `"type":"invalid_request"`, `"code":"idempotency_conflict"`)
	s.want(s.checkout(path, acpItems, "agent", "", "5"), 400, false, `"type":"invalid_request"`, `"code":"idempotency_key_required"`)
	s.ran(1)

	// A key belongs to the identity and the endpoint.
	s.want(s.checkout(path, acpItems, "another agent", key, "6"), 201, false, "checkout_session_2")
	complete := path + "/checkout_session_1/complete"
	s.want(s.checkout(complete, `{"payment_data":{"token":"spt_123","provider":"stripe"}}`, "agent", key, "7"), 200, false, "order_3")
	s.want(s.checkout(complete, `{"payment_data":{"token":"spt_123","provider":"stripe"}}`, "agent", key, "8"), 200, true, "order_3")
	s.want(s.checkout(complete, `{}`, "agent", "", "9"), 400, false, `"code":"idempotency_key_required"`)
	s.ran(3)
}
