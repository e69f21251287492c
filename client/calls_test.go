package repriseclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// The caller's rule sees the response or the error, and the decision of the others, and
// may read the problem.
func TestTheCallersRuleSeesTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := &fake{answer: func(n int, _ *http.Request) (*http.Response, error) {
			switch n {
			case 1:
				return nil, errNetwork
			case 2:
				return response(409, `{"code":"locked"}`, "Content-Type", "application/problem+json"), nil
			}
			return response(409, `{"code":"sold-out"}`, "Content-Type", "application/problem+json"), nil
		}}
		var seen []string
		transport := newTransport(t, base, Config{Retry: func(resp *http.Response, err error, retry bool) bool {
			p, _ := ProblemOf(resp)
			seen = append(seen, fmt.Sprintf("%q %v %v", p.Code, err, retry))
			return retry || p.Code == "locked"
		}})
		resp, body := do(t, transport, post(t.Context(), t, nil))
		if want := []string{`"" connection reset by peer true`, `"locked" <nil> false`, `"sold-out" <nil> false`}; !slices.Equal(seen, want) {
			t.Errorf("the rule saw %q, want %q", seen, want)
		}
		if body != `{"code":"sold-out"}` || GaveUp(resp) {
			t.Errorf("ended with %q, GaveUp is %v", body, GaveUp(resp))
		}
	})
}

func get(ctx context.Context, t *testing.T, method string) *http.Request {
	t.Helper()
	req := post(ctx, t, nil)
	req.Method = method
	return req
}

// Requests of the methods GET and HEAD are retried if they are listed, without a key. The
// observer of keyed calls is not notified.
func TestListedGetsAreRetriedWithoutAKey(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		inBubble(t, method, func(t *testing.T) {
			base := &fake{answer: func(n int, _ *http.Request) (*http.Response, error) {
				switch n {
				case 1:
					return nil, errNetwork
				case 2:
					return response(503, ""), nil
				case 3:
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(iotest.ErrReader(errNetwork))}, nil
				}
				return response(200, "seven", "Idempotency-Body", "omitted"), nil // means something for keyed calls only
			}}
			var seen recorded
			transport := newTransport(t, base, Config{Methods: []string{"GET", "HEAD", "POST"}, Observer: &seen})
			resp, body := do(t, transport, get(t.Context(), t, method))
			if base.attempts() != 4 || Attempts(resp) != 4 || body != "seven" {
				t.Errorf("%d attempts, Attempts is %d, got %q", base.attempts(), Attempts(resp), body)
			}
			if keys := base.keys("Idempotency-Key"); len(keys) != 1 || keys[0] != "" || KeyOf(resp) != "" {
				t.Errorf("sent the keys %q", keys)
			}
			if len(seen.starts)+len(seen.attempts)+len(seen.ends) != 0 {
				t.Errorf("the observer saw %+v", seen)
			}
		})
	}
}

// A GET has no operation whose outcome could be unknown: its error is that of the last
// attempt, and its retries have the bounds and the budget of others.
func TestAGetFailsWithTheErrorOfItsLastAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := always(failure(errNetwork))
		transport := newTransport(t, base, Config{Methods: []string{"GET", "POST"}, MaxAttempts: 3, Budget: Budget{Burst: 3}})
		err := fails(t, transport, get(t.Context(), t, http.MethodGet))
		if err != errNetwork || base.attempts() != 3 { //nolint:errorlint // as it is
			t.Errorf("%d attempts, and %v", base.attempts(), err)
		}
		if err := fails(t, transport, get(t.Context(), t, http.MethodGet)); !errors.Is(err, ErrBudgetExhausted) || base.attempts() != 5 {
			t.Errorf("%d attempts, and %v", base.attempts(), err)
		}
	})
}

// A listed GET that follows the redirect of a keyed call is retried too.
func TestAFollowedRedirectIsRetriedIfListed(t *testing.T) {
	t.Parallel()
	var gets atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			http.Redirect(w, r, "/orders/7", http.StatusSeeOther)
		case gets.Add(1)%3 != 0:
			panic(http.ErrAbortHandler)
		default:
			_, _ = io.WriteString(w, "seven")
		}
	}))
	server.Config.ErrorLog = quiet
	server.Start()
	defer server.Close()
	base := &http.Transport{DisableKeepAlives: true} // net/http repeats a GET too if a connection was idle before
	place := func(c Config) (string, error) {
		c.Delay, c.MaxDelay = 1, 1
		req := post(t.Context(), t, nil)
		req.URL.Host, req.Host = server.Listener.Addr().String(), ""
		resp, err := (&http.Client{Transport: newTransport(t, base, c)}).Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
	if got, err := place(Config{Methods: []string{"POST", "GET"}}); got != "seven" || err != nil || gets.Load() != 3 {
		t.Errorf("after %d GETs got %q, %v", gets.Load(), got, err)
	}
	gets.Store(0)
	var redirect *RedirectError
	if _, err := place(Config{Methods: []string{"POST", "GET"}, MaxAttempts: 2}); !errors.As(err, &redirect) || redirect.Status != 303 {
		t.Errorf("got %v, want a RedirectError", err)
	}
}
