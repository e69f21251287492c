package repriseclient

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Sizes and times have no value with which a call loses its body, its response or its
// retries: the largest is no bound at all.
func TestExtremeBoundsLoseNothing(t *testing.T) {
	t.Parallel()
	const forever, century = time.Duration(math.MaxInt64), 100 * 365 * 24 * time.Hour // the clock of the test ends in 2262
	for name, c := range map[string]Config{
		"MaxRequestBuffer":          {MaxRequestBuffer: math.MaxInt64},
		"MaxRequestBuffer, less 1":  {MaxRequestBuffer: math.MaxInt64 - 1},
		"MaxResponseBuffer":         {MaxResponseBuffer: math.MaxInt64},
		"MaxResponseBuffer, less 1": {MaxResponseBuffer: math.MaxInt64 - 1},
		"MaxResponseBuffer, least":  {MaxResponseBuffer: math.MinInt64},
		"MaxResponseBuffer, one":    {MaxResponseBuffer: 1},
		"MaxAttempts":               {MaxAttempts: math.MaxInt},
		"MaxElapsed":                {MaxElapsed: forever},
		"AttemptTimeout":            {AttemptTimeout: forever},
		"Delay, least":              {Delay: 1},
		"Delay and MaxDelay, least": {Delay: 1, MaxDelay: 1},
		"MaxDelay":                  {MaxDelay: forever},
		"Delay":                     {Delay: century, MaxElapsed: forever},
		"MaxRetryAfter":             {MaxRetryAfter: forever},
		"Budget.Burst":              {Budget: Budget{Burst: math.MaxInt}},
		"Budget.Burst, least":       {Budget: Budget{Burst: 2}},
		"Service.MaxKey":            {Service: Service{MaxKey: math.MaxInt}},
		"all": {
			MaxRequestBuffer: math.MaxInt64, MaxResponseBuffer: math.MaxInt64, MaxAttempts: math.MaxInt, MaxElapsed: forever,
			AttemptTimeout: forever, Delay: century, MaxDelay: century, MaxRetryAfter: forever,
			Budget: Budget{Burst: math.MaxInt}, Service: Service{MaxKey: math.MaxInt},
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			base := &fake{answer: failTimes(2)}
			req := post(t.Context(), t, io.NopCloser(strings.NewReader("12 EUR"))) // without GetBody
			resp, body := do(t, newTransport(t, base, c), req)
			if resp.StatusCode != http.StatusCreated || body != "created" {
				t.Errorf("ended with %d and %q", resp.StatusCode, body)
			}
			for i, s := range base.sent {
				if s.body != "12 EUR" {
					t.Errorf("attempt %d sent %q", i+1, s.body)
				}
			}
			if base.attempts() != 3 {
				t.Errorf("%d attempts, want 3", base.attempts())
			}
		})
	}
}

// No sum of the largest times is in the past.
func TestLongestWaitsAreNotInThePast(t *testing.T) {
	t.Parallel()
	const forever = time.Duration(math.MaxInt64)
	transport := newTransport(t, &fake{}, Config{Delay: forever, MaxDelay: forever, MaxElapsed: forever, MaxRetryAfter: forever, Budget: Budget{Off: true}})
	body := requestBody{again: func() (io.ReadCloser, error) { return http.NoBody, nil }}
	for range 100 {
		s := transport.newSchedule()
		for n := range 9 {
			if wait, err := s.next(t.Context(), verdict{after: longestRetryAfter}, &body); err != nil || wait < longestRetryAfter {
				t.Fatalf("wait %d is %s, %v", n+1, wait, err)
			}
		}
	}
}
