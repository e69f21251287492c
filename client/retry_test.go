package repriseclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/client/internal/secret"
)

func TestRetriedResponsesAndErrors(t *testing.T) {
	t.Parallel()
	const replayed = "Idempotent-Replayed"
	mine := "application/problem+json"
	for name, test := range map[string]struct {
		config Config
		answer func() (*http.Response, error)
		retry  bool
	}{
		"200":                        {answer: status(200)},
		"400":                        {answer: status(400)},
		"409 of the handler":         {answer: status(409)},
		"409 to wait for":            {answer: status(409, "Retry-After", "1"), retry: true},
		"409 to wait for, HTML":      {answer: body(409, "<h1>Busy</h1>", "Retry-After", "1", "Content-Type", "text/html"), retry: true},
		"409 to wait for, JSON":      {answer: body(409, `{"error":"busy"}`, "Retry-After", "1", "Content-Type", "application/json"), retry: true},
		"409 to wait for, problem":   {answer: body(409, `{"type":"/busy","code":"busy"}`, "Retry-After", "1", "Content-Type", mine), retry: true},
		"409 to wait for, replayed":  {answer: status(409, "Retry-After", "1", replayed, "true")},
		"409 to wait for, final":     {answer: body(409, `{"retryable":false}`, "Retry-After", "1", "Content-Type", mine)},
		"409 to wait for, no delay":  {answer: status(409, "Retry-After", "soon")},
		"409, if not listed":         {config: Config{Service: Service{RetryStatuses: []int{503}}}, answer: status(409, "Retry-After", "1")},
		"409 of Adyen":               {config: Config{Service: Adyen()}, answer: status(409, "Retry-After", "1")},
		"425":                        {answer: status(425)},
		"425 to wait for":            {answer: status(425, "Retry-After", "1"), retry: true},
		"422":                        {answer: status(422, "Retry-After", "1")},
		"429":                        {answer: status(429), retry: true},
		"500":                        {answer: status(500)},
		"502":                        {answer: status(502), retry: true},
		"503":                        {answer: status(503), retry: true},
		"504":                        {answer: status(504), retry: true},
		"500, if asked":              {config: Config{RetryServerErrors: true}, answer: status(500), retry: true},
		"500 replayed":               {config: Config{RetryServerErrors: true}, answer: status(500, replayed, "true")},
		"503 replayed":               {answer: status(503, replayed, "true")},
		"408, if listed":             {config: Config{Service: Service{RetryStatuses: []int{408}}}, answer: status(408), retry: true},
		"503, if not listed":         {config: Config{Service: Service{RetryStatuses: []int{}}}, answer: status(503)},
		"in-progress":                {answer: problem(409, CodeInProgress), retry: true},
		"outcome-unknown":            {answer: problem(409, CodeOutcomeUnknown)},
		"result-unavailable":         {answer: problem(409, CodeResultUnavailable)},
		"result-expired":             {answer: problem(409, CodeResultExpired)},
		"key-reused":                 {answer: problem(422, CodeKeyReused)},
		"key-missing":                {answer: problem(400, CodeKeyMissing)},
		"scope-missing":              {answer: problem(403, CodeScopeMissing)},
		"store-unavailable":          {answer: problem(503, CodeStoreUnavailable), retry: true},
		"not-applied":                {answer: problem(503, CodeNotApplied), retry: true},
		"record-corrupt":             {config: Config{RetryServerErrors: true}, answer: problem(500, CodeRecordCorrupt)},
		"record-corrupt at 503":      {answer: problem(503, CodeRecordCorrupt)},
		"response-too-large":         {config: Config{RetryServerErrors: true}, answer: problem(500, CodeResponseTooLarge)},
		"internal-error":             {config: Config{RetryServerErrors: true}, answer: problem(500, CodeInternalError)},
		"a code of tomorrow, false":  {answer: body(503, `{"code":"new","retryable":false}`, "Content-Type", mine)},
		"a code of tomorrow, true":   {answer: body(409, `{"code":"new","retryable":true}`, "Content-Type", mine), retry: true},
		"true where it changes none": {answer: body(422, `{"code":"new","retryable":true}`, "Content-Type", mine)},
		"a code of a recorded one":   {answer: body(409, `{"code":"new","retryable":true}`, "Content-Type", mine, replayed, "true")},
		"a code that was passed on":  {answer: problem(503, CodeStoreUnavailable, replayed, "true")},
		"a problem without a code":   {answer: body(503, `{"title":"Busy"}`, "Content-Type", mine), retry: true},
		"no code, false":             {answer: body(503, `{"title":"Down","retryable":false}`, "Content-Type", mine)},
		"no code, true":              {answer: body(409, `{"title":"Busy","retryable":true}`, "Content-Type", mine), retry: true},
		"no code, false, at 500":     {config: Config{RetryServerErrors: true}, answer: body(500, `{"retryable":false}`, "Content-Type", mine)},
		"no JSON":                    {answer: body(503, `busy`, "Content-Type", mine), retry: true},
		"in-progress in plain JSON":  {answer: body(409, `{"code":"in-progress"}`, "Content-Type", "application/json")},

		"own rule, yes":             {config: Config{Retry: own(true)}, answer: status(422), retry: true},
		"own rule, no":              {config: Config{Retry: own(false)}, answer: status(503)},
		"own rule, in-progress":     {config: Config{Retry: own(false)}, answer: problem(409, CodeInProgress)},
		"own rule, a failure":       {config: Config{Retry: own(false)}, answer: failure(errNetwork)},
		"own rule, a wrong peer":    {config: Config{Retry: own(true)}, answer: failure(&tls.CertificateVerificationError{Err: errNetwork}), retry: true},
		"own rule after the header": {config: Config{Service: Stripe(), Retry: own(false)}, answer: status(400, "Stripe-Should-Retry", "true")},
		"own rule after 500":        {config: Config{RetryServerErrors: true, Retry: own(false)}, answer: status(500)},

		"Stripe 409":             {config: Config{Service: Stripe()}, answer: status(409), retry: true},
		"Stripe 400, true":       {config: Config{Service: Stripe()}, answer: status(400, "Stripe-Should-Retry", "true"), retry: true},
		"Stripe 409, false":      {config: Config{Service: Stripe()}, answer: status(409, "Stripe-Should-Retry", "false")},
		"Stripe 500":             {config: Config{Service: Stripe()}, answer: status(500)},
		"Adyen 503":              {config: Config{Service: Adyen()}, answer: status(503)},
		"Adyen 409, transient":   {config: Config{Service: Adyen()}, answer: status(409, "Transient-Error", "true"), retry: true},
		"Adyen 422, transient":   {config: Config{Service: Adyen()}, answer: status(422, "transient-error", "true"), retry: true},
		"Adyen 503, not for now": {config: Config{Service: Adyen()}, answer: status(503, "Transient-Error", "false")},

		"a reset":             {answer: failure(errNetwork), retry: true},
		"a refused dial":      {answer: failure(&net.OpError{Op: "dial", Err: errNetwork}), retry: true},
		"no name":             {answer: failure(&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}), retry: true},
		"a wrong certificate": {answer: failure(&tls.CertificateVerificationError{Err: errNetwork})},
		"no TLS":              {answer: failure(tls.RecordHeaderError{Msg: "no TLS"})},
		"a bad scheme":        {answer: failure(errors.New(`unsupported protocol scheme "shop"`))},
		"nothing":             {answer: func() (*http.Response, error) { return nil, nil }, retry: true}, //nolint:nilnil // what a broken base does
	} {
		inBubble(t, name, func(t *testing.T) {
			base := &fake{answer: func(n int, _ *http.Request) (*http.Response, error) {
				if n == 1 {
					return test.answer()
				}
				return response(201, "created"), nil
			}}
			resp, err := newTransport(t, base, test.config).RoundTrip(post(t.Context(), t, nil))
			if err == nil {
				defer resp.Body.Close()
			}
			if got := base.attempts() == 2; got != test.retry {
				t.Fatalf("%d attempts, want a retry: %v", base.attempts(), test.retry)
			}
			if test.retry && (err != nil || resp.StatusCode != http.StatusCreated || Attempts(resp) != 2 || GaveUp(resp)) {
				t.Errorf("ended with %v, %v", resp, err)
			}
		})
	}
}

// own is a rule of the caller.
func own(retry bool) func(*http.Response, error, bool) bool {
	return func(resp *http.Response, err error, _ bool) bool {
		if err == nil && resp.StatusCode == http.StatusCreated {
			return false
		}
		return retry
	}
}

func status(code int, fields ...string) func() (*http.Response, error) {
	return body(code, "", fields...)
}

func body(code int, text string, fields ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return response(code, text, fields...), nil }
}

func problem(code int, c Code, fields ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return refusal(code, c, fields...), nil }
}

func failure(err error) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, err }
}

// always gives the same response.
func always(answer func() (*http.Response, error)) *fake {
	return &fake{answer: func(int, *http.Request) (*http.Response, error) { return answer() }}
}

func TestAttemptsAndElapsedTimeAreBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config   Config
		answer   func() (*http.Response, error)
		timeout  time.Duration
		attempts [2]int        // at least and at most
		longest  time.Duration // of the call
		shortest time.Duration // of the call
	}{
		"attempts":                  {config: Config{MaxAttempts: 3}, answer: status(503), attempts: [2]int{3, 3}, longest: 600 * time.Millisecond},
		"one attempt":               {config: Config{MaxAttempts: 1}, answer: status(503), attempts: [2]int{1, 1}},
		"the defaults":              {answer: status(503), attempts: [2]int{10, 10}, longest: time.Minute},
		"elapsed":                   {config: Config{MaxElapsed: time.Second, MaxAttempts: 100}, answer: status(503), attempts: [2]int{2, 100}, longest: time.Second},
		"the deadline":              {config: Config{MaxAttempts: 100}, answer: status(503), timeout: time.Second, attempts: [2]int{2, 100}, longest: time.Second},
		"no sleep past a deadline":  {answer: status(503, "Retry-After", "2"), timeout: time.Second, attempts: [2]int{1, 1}},
		"Retry-After":               {config: Config{MaxAttempts: 3}, answer: status(503, "Retry-After", "3"), attempts: [2]int{3, 3}, shortest: 6 * time.Second, longest: 8 * time.Second},
		"a Retry-After of nothing":  {config: Config{MaxAttempts: 2}, answer: status(503, "Retry-After", "0"), attempts: [2]int{2, 2}, longest: 200 * time.Millisecond},
		"Retry-After, too long":     {answer: status(503, "Retry-After", "31"), attempts: [2]int{1, 1}},
		"Retry-After, past elapsed": {config: Config{MaxElapsed: 10 * time.Second}, answer: status(503, "Retry-After", "11"), attempts: [2]int{1, 1}},
		"the retry budget":          {config: Config{Budget: Budget{Burst: 2}}, answer: status(503), attempts: [2]int{3, 3}, longest: time.Second},
		"no retry budget":           {config: Config{Budget: Budget{Off: true}}, answer: status(503), attempts: [2]int{10, 10}, longest: time.Minute},
		"an hour in progress":       {config: Config{MaxElapsed: time.Hour}, answer: problem(409, CodeInProgress), attempts: [2]int{300, 2000}, longest: time.Hour},
	} {
		inBubble(t, name, func(t *testing.T) {
			ctx := t.Context()
			if test.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.timeout)
				defer cancel()
			}
			base := always(test.answer)
			began := time.Now()
			resp, _ := do(t, newTransport(t, base, test.config), post(ctx, t, nil))
			took := time.Since(began)
			if n := base.attempts(); n < test.attempts[0] || n > test.attempts[1] || n != Attempts(resp) {
				t.Errorf("%d attempts, and Attempts says %d, want %v", n, Attempts(resp), test.attempts)
			}
			if took > test.longest || took < test.shortest {
				t.Errorf("took %s, want %s to %s", took, test.shortest, test.longest)
			}
			if last, _ := test.answer(); resp.StatusCode != last.StatusCode || !GaveUp(resp) {
				t.Errorf("ended with %d and GaveUp %v, want the last answer", resp.StatusCode, GaveUp(resp))
			}
		})
	}
}

// In a storm there are few more requests than calls.
func TestTheBudgetBoundsAStorm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := always(failure(errNetwork))
		transport := newTransport(t, base, Config{Budget: Budget{Burst: 10}})
		var last error
		for range 1000 {
			last = fails(t, transport, post(t.Context(), t, nil))
		}
		if n := base.attempts(); n < 1200 || n > 1215 {
			t.Errorf("1000 calls made %d attempts, want about 1210", n)
		}
		if !errors.Is(last, ErrBudgetExhausted) || !errors.Is(last, errNetwork) {
			t.Errorf("got %v, want what failed, and ErrBudgetExhausted", last)
		}
		base.answer = failTimes(0)
		for range 10 {
			do(t, transport, post(t.Context(), t, nil))
		}
		transport.bucket.mu.Lock()
		defer transport.bucket.mu.Unlock()
		if transport.bucket.tokens < 1 {
			t.Error("10 calls put no token back")
		}
	})
}

// Full jitter: a wait is anything up to the bound, and the bound doubles.
func TestWaitsAreFullyJittered(t *testing.T) {
	t.Parallel()
	transport := newTransport(t, &fake{}, Config{Delay: time.Second, MaxDelay: 4 * time.Second, Budget: Budget{Off: true}, MaxElapsed: time.Hour})
	body := requestBody{again: func() (io.ReadCloser, error) { return http.NoBody, nil }}
	bounds := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second}
	low, high := make([]time.Duration, len(bounds)), make([]time.Duration, len(bounds))
	for range 2000 {
		s := transport.newSchedule()
		for i := range bounds {
			wait, err := s.next(t.Context(), verdict{}, &body)
			must(t, err)
			if low[i] == 0 || wait < low[i] {
				low[i] = wait
			}
			high[i] = max(high[i], wait)
		}
	}
	for i, bound := range bounds {
		if high[i] > bound+1 || high[i] < bound*9/10 || low[i] > bound/10 {
			t.Errorf("before retry %d the waits were %s to %s, want all of 0 to %s", i+1, low[i], high[i], bound)
		}
	}
}

// Clients that are told the same wait do not come back together, and none comes early.
func TestRetryAfterIsJittered(t *testing.T) {
	t.Parallel()
	transport := newTransport(t, &fake{}, Config{Budget: Budget{Off: true}})
	body := requestBody{again: func() (io.ReadCloser, error) { return http.NoBody, nil }}
	different := make(map[time.Duration]bool)
	for range 100 {
		wait, err := transport.newSchedule().next(t.Context(), verdict{after: 4 * time.Second}, &body)
		if err != nil || wait < 4*time.Second || wait > 5*time.Second {
			t.Fatalf("wait %s, %v, want 4 s to 5 s", wait, err)
		}
		different[wait] = true
	}
	if len(different) < 50 {
		t.Errorf("100 waits had %d values", len(different))
	}
}

func TestACallEndsWithItsContextOrCancelChannel(t *testing.T) {
	t.Parallel()
	reason := errors.New("the shop closed")
	for _, want := range []error{reason, context.Canceled} {
		inBubble(t, want.Error(), func(t *testing.T) {
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			channel := make(chan struct{})
			time.AfterFunc(5*time.Second, func() {
				if errors.Is(want, reason) {
					end(reason)
				} else {
					close(channel)
				}
			})
			req := post(ctx, t, nil)
			req.Cancel = channel //nolint:staticcheck // deprecated, and http.Client sets it
			began := time.Now()
			err := fails(t, newTransport(t, always(status(503, "Retry-After", "20")), Config{}), req)
			var unknown *UnknownOutcomeError
			if !errors.Is(err, want) || !errors.As(err, &unknown) || unknown.Attempts != 1 || time.Since(began) != 5*time.Second {
				t.Errorf("ended after %s with %v", time.Since(began), err)
			}
			if !strings.Contains(err.Error(), "503") {
				t.Errorf("the error does not say what the last answer was: %v", err)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		value, date string
		want        time.Duration
		ok          bool
	}{
		"absent":                    {},
		"seconds":                   {value: "7", want: 7 * time.Second, ok: true},
		"spaces":                    {value: " 7\t", want: 7 * time.Second, ok: true},
		"more digits than an int64": {value: "99999999999999999999999", want: longestRetryAfter, ok: true},
		"negative":                  {value: "-7"},
		"a fraction":                {value: "7.5"},
		"a word":                    {value: "soon"},
		"a date":                    {value: "Sun, 22 Nov 2026 12:00:09 GMT", want: 9 * time.Second, ok: true},
		"a date by its clock":       {value: "Sun, 22 Nov 2026 12:00:09 GMT", date: "Sun, 22 Nov 2026 12:00:04 GMT", want: 5 * time.Second, ok: true},
		"the old forms":             {value: "Sun Nov 22 12:00:09 2026", want: 9 * time.Second, ok: true},
		"a date that is over":       {value: "Sun, 22 Nov 2020 12:00:09 GMT", ok: true},
		"a date far away":           {value: "Fri, 31 Dec 9999 23:59:59 GMT", want: longestRetryAfter, ok: true},
	} {
		h := http.Header{}
		if test.value != "" {
			h.Set("Retry-After", test.value)
		}
		if test.date != "" {
			h.Set("Date", test.date)
		}
		if got, ok := retryAfter(h, now); got != test.want || ok != test.ok {
			t.Errorf("%s: got %s, %v, want %s, %v", name, got, ok, test.want, test.ok)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "1", "-1", "Sun, 22 Nov 2026 12:00:09 GMT", "99999999999999999999"} {
		f.Add(seed, "Sun, 22 Nov 2026 12:00:09 GMT")
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		if d, ok := retryAfter(h, time.Now()); d < 0 || d > longestRetryAfter || (!ok && d != 0) {
			t.Errorf("%q is %s, %v", value, d, ok)
		}
	})
}

func TestErrorsSayWhetherItMayHaveRun(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errNetwork}
	for name, test := range map[string]struct {
		errs []error // of the attempts; nil: 503
		sent bool
	}{
		"never connected":         {errs: []error{refused, refused, refused}},
		"a wrong certificate":     {errs: []error{&tls.CertificateVerificationError{Err: errNetwork}}},
		"once on its way":         {errs: []error{refused, errNetwork, refused}, sent: true},
		"an answer before":        {errs: []error{nil, refused, refused}, sent: true},
		"lost at the last":        {errs: []error{refused, refused, errNetwork}, sent: true},
		"lost at the first alone": {errs: []error{errNetwork, refused, refused}, sent: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			base := &fake{answer: func(n int, _ *http.Request) (*http.Response, error) {
				if err := test.errs[n-1]; err != nil {
					return nil, err
				}
				return response(503, ""), nil
			}}
			transport := newTransport(t, base, Config{MaxAttempts: len(test.errs)})
			err := fails(t, transport, post(WithKey(t.Context(), "secret-7"), t, nil))
			var unknown *UnknownOutcomeError
			var not *NotSentError
			if errors.As(err, &unknown) != test.sent || errors.As(err, &not) == test.sent {
				t.Fatalf("got %T, %v", err, err)
			}
			if !errors.Is(err, errNetwork) {
				t.Errorf("%v does not wrap the last error", err)
			}
			if strings.Contains(err.Error(), "secret-7") || !strings.Contains(err.Error(), secret.Hash("", "", "secret-7")) {
				t.Errorf("want the hash of the key, and not the key: %v", err)
			}
			if test.sent && unknown.Attempts != len(test.errs) {
				t.Errorf("says %d attempts", unknown.Attempts)
			}
		})
	}
}

// The error of an attempt that took too long is not that of a caller who cancelled, and
// still says how far the attempt got.
func TestAttemptTimeoutIsNoCancellation(t *testing.T) {
	t.Parallel()
	err := errTimeout(&net.OpError{Op: "dial", Err: fmt.Errorf("%w: %w", context.Canceled, errNetwork)})
	if !errors.Is(err, ErrAttemptTimeout) || errors.Is(err, context.Canceled) || !errors.Is(err, errNetwork) || !neverSent(err) {
		t.Errorf("got %v", err)
	}
}

func TestTimeoutErrorsReportTimeout(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]bool{context.DeadlineExceeded: true, errTimeout(errNetwork): true, errNetwork: false} {
		if (&UnknownOutcomeError{Err: cause}).Timeout() != want || (&NotSentError{Err: cause}).Timeout() != want {
			t.Errorf("%v is a timeout: %t", cause, !want)
		}
	}
}
