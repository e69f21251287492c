package repriseclient

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/client/internal/secret"
)

func TestObserversSeeEveryAttemptAndCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen recorded
		var inside int
		base := &fake{answer: func(n int, req *http.Request) (*http.Response, error) {
			if req.Context().Value(insideKey{}) != nil {
				inside++
			}
			switch n {
			case 1:
				return nil, errNetwork
			case 2:
				return refusal(409, CodeInProgress, "Retry-After", "2"), nil
			}
			return response(201, "created", "Idempotent-Replayed", "true"), nil
		}}
		began := time.Now()
		do(t, newTransport(t, base, Config{Observer: &seen}), post(WithKey(t.Context(), "order-7"), t, nil))
		took := time.Since(began)

		if len(seen.starts) != 1 || seen.starts[0] != (CallStart{Method: "POST", Host: "shop.example", KeyHash: secret.Hash("", "", "order-7")}) {
			t.Errorf("starts: %+v", seen.starts)
		}
		if len(seen.attempts) != 3 || inside != 3 || seen.inside != 4 {
			t.Fatalf("%d attempts, %d and %d events with the observer's context", len(seen.attempts), inside, seen.inside)
		}
		first, second, third := seen.attempts[0], seen.attempts[1], seen.attempts[2]
		if first.Number != 1 || !errors.Is(first.Err, errNetwork) || !first.Retry || first.Status != 0 {
			t.Errorf("first: %+v", first)
		}
		if second.Number != 2 || second.Err != nil || !second.Retry || second.Status != 409 || second.Code != CodeInProgress || second.Wait < 2*time.Second {
			t.Errorf("second: %+v", second)
		}
		if third.Number != 3 || third.Retry || third.Status != 201 || third.Wait != 0 {
			t.Errorf("third: %+v", third)
		}
		if want := (CallEnd{Outcome: AnsweredReplay, Attempts: 3, Duration: took, Status: 201}); len(seen.ends) != 1 || seen.ends[0] != want {
			t.Errorf("ends: %+v", seen.ends)
		}
	})
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer func() (*http.Response, error)
		key    string
		want   Outcome
		code   Code
	}{
		{answer: status(201), key: "a", want: Answered},
		{answer: status(201, "Idempotent-Replayed", "true"), key: "a", want: AnsweredReplay},
		{answer: status(201, "Idempotent-Replayed", "true", "Idempotency-Body", "omitted"), key: "a", want: AnsweredOmitted},
		{answer: status(201, "Idempotency-Status", "unprotected"), key: "a", want: AnsweredUnprotected},
		{answer: status(201, "Idempotency-Status", "unrecorded"), key: "a", want: AnsweredUnrecorded},
		{answer: status(201, "Idempotency-Status", "of tomorrow", "Idempotency-Body", "of tomorrow"), key: "a", want: Answered},
		{answer: status(503, "Idempotency-Status", "unrecorded"), key: "a", want: GaveUpRetrying},
		{answer: problem(409, CodeOutcomeUnknown), key: "a", want: Answered, code: CodeOutcomeUnknown},
		{answer: problem(503, CodeStoreUnavailable), key: "a", want: GaveUpRetrying, code: CodeStoreUnavailable},
		{answer: failure(errNetwork), key: "a", want: OutcomeUnknown},
		{answer: failure(errors.New("unsupported protocol scheme")), key: "a", want: OutcomeNotSent},
	} {
		var seen recorded
		resp, err := newTransport(t, always(test.answer), Config{Observer: &seen, MaxAttempts: 1}).RoundTrip(post(WithKey(t.Context(), test.key), t, nil))
		if err == nil {
			_ = resp.Body.Close()
			if got := OutcomeOf(resp); got != test.want {
				t.Errorf("OutcomeOf is %s, want %s", got, test.want)
			}
		}
		if end := seen.ends[0]; end.Outcome != test.want || end.Code != test.code || (err != nil) != (end.Err != nil) {
			t.Errorf("got %+v, want %s", end, test.want)
		}
	}
	names := make(map[string]bool)
	for _, o := range Outcomes() {
		names[o.String()] = true
	}
	if len(names) != 8 || names[""] || Outcome(99).String() != "" {
		t.Errorf("names: %v", names)
	}
}

func TestConfigNamesItsInvalidField(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]Config{
		"MaxAttempts":           {MaxAttempts: -1},
		"MaxElapsed":            {MaxElapsed: -1},
		"AttemptTimeout":        {AttemptTimeout: -1},
		"Delay":                 {Delay: -1},
		"MaxDelay":              {Delay: time.Second, MaxDelay: time.Millisecond},
		"MaxRetryAfter":         {MaxRetryAfter: -1},
		"Methods":               {Methods: []string{}},
		"Methods ":              {Methods: []string{"post"}},
		"Methods  ":             {Methods: []string{"GET"}},
		"Budget.Burst":          {Budget: Budget{Burst: -1}},
		"Methods   ":            {Methods: []string{"GET", "HEAD"}},
		"Budget.Off":            {Budget: Budget{Off: true, Burst: 1}},
		"RetryHeader and":       {Service: Service{RetryHeader: "idempotent-replayed"}},
		"Service.Header":        {Service: Service{Header: "Idempotency Key"}},
		"Service.Replayed":      {Service: Service{Replayed: "a:"}},
		"Service.RetryHeader":   {Service: Service{RetryHeader: "\n"}},
		"Service.MaxKey":        {Service: Service{MaxKey: 35}},
		"Service.RetryStatuses": {Service: Service{RetryStatuses: []int{422}}},
	} {
		if _, err := NewTransport(nil, c); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(field)) {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if _, err := NewTransport(nil, Config{Methods: []string{"PUT", "DELETE"}, Delay: time.Minute}); err != nil {
		t.Error(err)
	}
}
