package repriseclient

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// verdict is a [Transport]'s judgement of one attempt.
type verdict struct {
	retryable bool          // another attempt may end differently
	running   bool          // because the operation is still in progress
	after     time.Duration // Retry-After
	code      Code          // of the problem document, if it is known
}

// judge decides about an attempt by its response, or by its error where there is none.
// The caller's own rule has the last word.
func (t *Transport) judge(req *http.Request, resp *http.Response, err error) verdict {
	v := verdict{retryable: err != nil && !permanent(err)}
	if err == nil {
		v = t.judgeResponse(req, resp)
	}
	if t.config.Retry != nil {
		v.retryable = t.config.Retry(resp, err, v.retryable)
		v.running = v.running && v.retryable
	}
	return v
}

func (t *Transport) judgeResponse(req *http.Request, resp *http.Response) (v verdict) {
	status := resp.StatusCode
	rpc, isRPC := rpcStatusOf(req, resp)
	if isRPC {
		status = rpc.http
	}
	if status < 400 {
		return v
	}
	var known bool
	if isRPC {
		v.code, v.retryable, known = t.byCode(resp, Code(rpc.Code))
	} else {
		v.code, v.retryable, known = t.byProblem(resp)
	}
	after, waits := retryAfter(resp.Header, time.Now())
	runs := status == http.StatusConflict || status == http.StatusTooEarly && waits
	if !known {
		v.retryable = t.byStatus(resp, status) || runs && waits && t.waits && !t.isReplay(resp)
	}
	if t.service.RetryHeader != "" {
		switch word := strings.TrimSpace(resp.Header.Get(t.service.RetryHeader)); {
		case strings.EqualFold(word, "true"):
			v.retryable = true
		case strings.EqualFold(word, "false"):
			v.retryable = false
		}
	}
	v.running = v.retryable && (v.code == CodeInProgress || !known && runs)
	if v.after = after; !waits {
		v.after = rpc.RetryAfter
	}
	return v
}

// byProblem decides by the problem document of a response. If it has no code, or one that
// the table lacks, the member retryable decides: false forbids a retry, and true allows
// one if the status may be about this attempt alone.
func (t *Transport) byProblem(resp *http.Response) (code Code, retry, known bool) {
	p, ok := ProblemOf(resp)
	if !ok || t.isReplay(resp) {
		return "", false, false
	}
	if code, retry, known = t.byCode(resp, p.Code); known {
		return code, retry, true
	}
	if p.says == nil {
		return "", false, false
	}
	return "", *p.says && mayRetry(resp.StatusCode), true
}

// byCode decides by the code of a problem, if the table of codes has it. A replayed
// problem is one that the handler passed on, and is final.
func (t *Transport) byCode(resp *http.Response, code Code) (_ Code, retry, known bool) {
	if retry, known = retryable[code]; !known || t.isReplay(resp) {
		return "", false, false
	}
	return code, retry, true
}

// byStatus decides by the status. A replay is final with any status: the next response
// would be the same.
func (t *Transport) byStatus(resp *http.Response, status int) bool {
	if t.isReplay(resp) {
		return false
	}
	return slices.Contains(t.service.RetryStatuses, status) ||
		t.config.RetryServerErrors && status == http.StatusInternalServerError
}

func (t *Transport) isReplay(resp *http.Response) bool {
	return isReplay(resp.Header, t.service.Replayed)
}

// neverSent reports whether err is the error of an attempt that had no connection yet.
func neverSent(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") {
		return true
	}
	return badPeer(err) || badRequest(err)
}

// permanent reports whether every attempt would fail in this way.
func permanent(err error) bool {
	const shortBody = "http: ContentLength=" // found by net/http when the header is written
	return badPeer(err) || badRequest(err) || strings.Contains(err.Error(), shortBody)
}

// badPeer reports whether this end refused the connection, because the certificate of the
// other end is invalid or it does not speak TLS.
func badPeer(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &record)
}

// badRequest reports whether there was no request to send: GetBody failed, or net/http
// refused the request, which only the text of its error tells.
func badRequest(err error) bool {
	var body bodyError
	if errors.As(err, &body) {
		return true
	}
	text := err.Error()
	return slices.ContainsFunc([]string{
		"unsupported protocol scheme", "net/http: invalid ", "http: nil Request.URL", "http: no Host in request URL",
	}, func(refusal string) bool { return strings.Contains(text, refusal) })
}

// schedule plans the attempts of one call within its bounds.
type schedule struct {
	transport *Transport
	began     time.Time
	counted   int // attempts, except those that found the operation in progress
	jitter    backoff.ExponentialBackOff
}

func (t *Transport) newSchedule() *schedule {
	return &schedule{
		transport: t, began: time.Now(),
		// Full jitter: with a factor of 1 a wait is anything up to twice the interval.
		jitter: backoff.ExponentialBackOff{
			InitialInterval: t.config.Delay / 2, RandomizationFactor: 1, Multiplier: 2, MaxInterval: t.config.MaxDelay / 2,
		},
	}
}

// ErrBudgetExhausted is wrapped by the error of a failed call that was not retried,
// although its own bounds allowed it, because the [Budget] that all calls share is used
// up.
var ErrBudgetExhausted = errors.New("repriseclient: not retried, because the retry budget is used up")

// errBounds says that the bounds of the call itself allow no other attempt.
var errBounds = errors.New("repriseclient: the bounds of the call are reached")

// leastWait is the shortest wait for an operation in progress. Time alone bounds these
// attempts, so waits of a few milliseconds would cause thousands of requests.
const leastWait = 100 * time.Millisecond

// next returns how long to wait before the next attempt, or why there is none. An attempt
// that found the operation in progress takes no token and does not count, because such
// attempts do not multiply when the service fails.
func (s *schedule) next(ctx context.Context, v verdict, body *requestBody) (time.Duration, error) {
	c := &s.transport.config
	if !v.running {
		s.counted++
	}
	if s.counted >= c.MaxAttempts || c.MaxAttempts == 1 || v.after > c.MaxRetryAfter {
		return 0, errBounds
	}
	wait := s.jitter.NextBackOff()
	if v.running {
		wait = max(wait, leastWait)
	}
	wait = max(wait, v.after+min(wait, v.after/4)) // clients that got the same Retry-After must not return together
	at := time.Now().Add(wait)
	if at.Sub(s.began) > c.MaxElapsed {
		return 0, errBounds
	}
	if deadline, ok := ctx.Deadline(); ok && !at.Before(deadline) {
		return 0, errBounds
	}
	if body.again == nil {
		return 0, ErrNotReplayable
	}
	if !v.running && !s.transport.bucket.withdraw() {
		return 0, ErrBudgetExhausted
	}
	return wait, nil
}

// sleep waits, and reports false if the call ended before.
func sleep(ctx context.Context, req *http.Request, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
	case <-req.Cancel: //nolint:staticcheck // deprecated, and still used by callers
	}
	return false
}
