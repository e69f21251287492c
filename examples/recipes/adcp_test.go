package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

const adcpKey = "0b8a3c1e-77a5-4a7e-9a52-2f3f5f1f9d11"

// buy calls create_media_buy.
func (s *service) buy(id int, key, account, context string, budget int) answer {
	s.Helper()
	arguments := fmt.Sprintf(`{"idempotency_key":%q,"account":{"account_id":%q},"brand":{"domain":"shop.example"},"total_budget":%d,"context":{"correlation_id":%q}}`,
		key, account, budget, context)
	return s.call("/adcp", strconv.Itoa(id), "create_media_buy", "", arguments)
}

func TestAdCPMediaBuyIsBookedOnce(t *testing.T) {
	t.Parallel()
	s := startBlocked(t)
	first := s.begin(func() answer { return s.buy(1, adcpKey, "acc_1", "a", 500) })
	retries := make(chan answer, 4)
	for id := range cap(retries) {
		go func() { retries <- s.buy(10+id, adcpKey, "acc_1", "b", 500) }()
	}
	for s.engine.Stats().Waiting < cap(retries) && len(retries) == 0 {
		runtime.Gosched()
	}
	s.finish()
	s.want(<-first, 200, false, `"media_buy_id":"mb_1"`)
	for range cap(retries) {
		s.want(<-retries, 200, true, `"media_buy_id":"mb_1"`, `"replayed":true`)
	}
	s.want(s.buy(2, adcpKey, "acc_1", "c", 501), 200, false, `"isError":true`, `"code":"IDEMPOTENCY_CONFLICT"`)
	s.want(s.buy(3, "too-short", "acc_1", "d", 500), 200, false, `"code":"INVALID_REQUEST"`)
	s.want(s.buy(4, "", "acc_1", "d", 500), 200, false, `"code":"INVALID_REQUEST"`)
	s.want(s.buy(5, adcpKey, "", "d", 500), 200, false, `"code":"AUTH_MISSING"`)
	s.ran(1)
	other := s.buy(6, adcpKey, "acc_2", "e", 500)
	s.want(other, 200, false, `"media_buy_id":"mb_2"`)
	if strings.Contains(other.body, "replayed") {
		t.Errorf("the first response is marked: %s", other.body)
	}
}

// A failure is a 200, and not kept: the same request runs again.
func TestAdCPFailureIsNotKept(t *testing.T) {
	t.Parallel()
	s := start(t)
	for id := range 2 {
		s.want(s.buy(id, adcpKey, "acc_1", "", 99), 200, false, `"isError":true`, `"code":"BUDGET_TOO_LOW"`)
	}
	s.ran(2)
	s.want(s.buy(3, adcpKey, "acc_1", "", 100), 200, false, `"media_buy_id":"mb_3"`)
}

func TestAdCPProblems(t *testing.T) {
	t.Parallel()
	for code, want := range map[protocol.Code][]string{
		protocol.CodeInProgress:       {"IDEMPOTENCY_IN_FLIGHT", "transient", `"retry_after":1`},
		protocol.CodeResultExpired:    {"IDEMPOTENCY_EXPIRED", "correctable"},
		protocol.CodeStoreUnavailable: {"SERVICE_UNAVAILABLE", "transient"},
		protocol.CodeOutcomeUnknown:   {"SERVICE_UNAVAILABLE", "terminal"},
	} {
		r := adcpProblem(t.Context(), nil, code.Problem())
		for _, part := range want {
			if r.Status != 200 || !strings.Contains(string(r.Body), part) {
				t.Errorf("%s: %d %s, want %s", code, r.Status, r.Body, part)
			}
		}
	}
}
