package repriseclient

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A call waits for an operation in progress as long as its time allows: neither its
// number of attempts nor the budget of all calls ends it before.
func TestTheWaitForAnOperationInProgressIsBoundedByTimeAlone(t *testing.T) {
	t.Parallel()
	inProgress := func(fields ...string) func() *http.Response {
		return func() *http.Response { return refusal(409, CodeInProgress, fields...) }
	}
	stripe := func() *http.Response { return response(409, "") }
	draft := func(status int) func() *http.Response { // draft-ietf-httpapi-idempotency-key-header-07, 2.7
		return func() *http.Response { return response(status, "busy", "Retry-After", "1") }
	}
	for name, test := range map[string]struct {
		config  Config
		running func() *http.Response
		runs    time.Duration // of the operation
		want    int
		gaveUp  bool
		most    time.Duration // of the call
		once    bool
	}{
		"the default lease, and some":    {running: inProgress("Retry-After", "1"), runs: 40 * time.Second, want: 201, most: 51 * time.Second},
		"few attempts, and no budget":    {config: Config{MaxAttempts: 2, Budget: Budget{Burst: 1}}, running: inProgress("Retry-After", "1"), runs: 40 * time.Second, want: 201, most: 51 * time.Second},
		"long waits":                     {running: inProgress("Retry-After", "10"), runs: 30 * time.Second, want: 201, most: 43 * time.Second},
		"without Retry-After":            {running: inProgress(), runs: 30 * time.Second, want: 201, most: 41 * time.Second},
		"409 of a service that lists it": {config: Config{Service: Stripe()}, running: stripe, runs: 40 * time.Second, want: 201, most: 51 * time.Second},
		"409 of any service":             {running: draft(409), runs: 40 * time.Second, want: 201, most: 51 * time.Second},
		"425 of any service":             {running: draft(425), runs: 40 * time.Second, want: 201, most: 51 * time.Second},
		"longer than MaxElapsed":         {running: inProgress("Retry-After", "1"), runs: time.Hour, want: 409, gaveUp: true, most: 2 * time.Minute},
		"a shorter MaxElapsed":           {config: Config{MaxElapsed: 5 * time.Second}, running: inProgress("Retry-After", "1"), runs: time.Hour, want: 409, gaveUp: true, most: 5 * time.Second},
		"without retries":                {config: Config{MaxAttempts: 1}, running: inProgress("Retry-After", "1"), runs: time.Hour, want: 409, gaveUp: true, once: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			began := time.Now()
			base := &fake{answer: func(int, *http.Request) (*http.Response, error) {
				if time.Since(began) < test.runs {
					return test.running(), nil
				}
				return response(http.StatusCreated, "created"), nil
			}}
			resp, _ := do(t, newTransport(t, base, test.config), post(t.Context(), t, nil))
			if resp.StatusCode != test.want || GaveUp(resp) != test.gaveUp {
				t.Errorf("ended with %d after %s, GaveUp is %v", resp.StatusCode, time.Since(began), GaveUp(resp))
			}
			if took := time.Since(began); took > test.most || (base.attempts() == 1) != test.once {
				t.Errorf("took %s and %d attempts", took, base.attempts())
			}
		})
	}
}

// Waits may be configured to be as short as can be. For an operation in progress, whose
// attempts are not counted, they are not.
func TestAnOperationInProgressIsNotAskedForInAHotLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := &fake{answer: func(n int, _ *http.Request) (*http.Response, error) {
			if n > 100 {
				return response(http.StatusOK, "too often"), nil
			}
			return response(409, ""), nil
		}}
		transport := newTransport(t, base, Config{Service: Stripe(), Delay: 1, MaxDelay: 10, MaxElapsed: 5 * time.Second})
		if resp, _ := do(t, transport, post(t.Context(), t, nil)); !GaveUp(resp) || base.attempts() > 51 {
			t.Errorf("%d attempts in 5 s, the last with %d", base.attempts(), resp.StatusCode)
		}
	})
}

// Only the answers that the operation is in progress are free.
func TestOtherAttemptsCountBesideThoseInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := &fake{answer: func(n int, _ *http.Request) (*http.Response, error) {
			if n%2 == 0 {
				return refusal(409, CodeInProgress, "Retry-After", "1"), nil
			}
			return nil, errNetwork
		}}
		transport := newTransport(t, base, Config{MaxAttempts: 4})
		_ = fails(t, transport, post(t.Context(), t, nil))
		if n := base.attempts(); n != 7 {
			t.Errorf("%d attempts, want 4 that failed and 3 between", n)
		}
		if spent := float64(defaultBurst) - transport.bucket.tokens; spent != 3 {
			t.Errorf("%v tokens were taken, want those of 3 retries", spent)
		}
	})
}
