package repriseclient

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestProblemOf(t *testing.T) {
	t.Parallel()
	const document = `{"type":"https://shop.example/problems#in-progress","title":"Request in progress","status":409,` +
		`"detail":"Wait.","code":"in-progress","retryable":true}`
	resp := response(409, document, "Content-Type", "application/problem+json; charset=utf-8", "Retry-After", "3")
	for range 2 { // the body is restored
		p, ok := ProblemOf(resp)
		p.says = nil
		want := Problem{
			Code: CodeInProgress, Status: 409, Type: "https://shop.example/problems#in-progress", Title: "Request in progress",
			Detail: "Wait.", Retryable: true, RetryAfter: 3 * time.Second,
		}
		if !ok || p != want {
			t.Errorf("got %+v, %v", p, ok)
		}
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != document {
		t.Errorf("the body is now %q, %v", rest, err)
	}
}

func TestProblemOfOtherResponses(t *testing.T) {
	t.Parallel()
	long := `{"code":"in-progress","detail":"` + strings.Repeat("x", maxProblem) + `"}`
	for name, resp := range map[string]*http.Response{
		"plain JSON":  response(409, `{"code":"in-progress"}`, "Content-Type", "application/json"),
		"no type":     response(409, `{"code":"in-progress"}`),
		"no JSON":     response(409, `busy`, "Content-Type", "application/problem+json"),
		"null":        response(409, `null`, "Content-Type", "application/problem+json"),
		"a list":      response(409, `["in-progress"]`, "Content-Type", "application/problem+json"),
		"too long":    response(409, long, "Content-Type", "application/problem+json"),
		"a bad media": response(409, `{"code":"in-progress"}`, "Content-Type", "application/problem+json; ="),
	} {
		before := "in-progress"
		if p, ok := ProblemOf(resp); ok && name != "a bad media" {
			t.Errorf("%s: got %+v", name, p)
		}
		rest, err := io.ReadAll(resp.Body)
		if err != nil || (!strings.Contains(string(rest), before) && string(rest) != "busy" && string(rest) != "null") {
			t.Errorf("%s: the body was not restored: %v", name, err)
		}
	}
	if _, ok := ProblemOf(nil); ok {
		t.Error("nil has a problem")
	}
}

func TestProblemOfABodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	resp := response(409, "", "Content-Type", "application/problem+json")
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"co`), failing{io.ErrUnexpectedEOF}))
	if p, ok := ProblemOf(resp); ok {
		t.Errorf("got %+v", p)
	}
	if rest, err := io.ReadAll(resp.Body); string(rest) != `{"co` || err != io.ErrUnexpectedEOF { //nolint:errorlint // the very error
		t.Errorf("the body is now %q, %v", rest, err)
	}
}

func FuzzParseProblem(f *testing.F) {
	for _, seed := range []string{``, `{}`, `null`, `{"code":1}`, `{"code":"in-progress","retryable":"yes"}`, `{"retryable":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		resp := response(503, string(document), "Content-Type", "application/problem+json")
		p, ok := ProblemOf(resp)
		if rest, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(rest, document) {
			t.Errorf("the body is now %q, %v", rest, err)
		}
		if !ok && p != (Problem{}) {
			t.Errorf("no problem has %+v", p)
		}
	})
}

func TestHelpersKnowOtherResponses(t *testing.T) {
	t.Parallel()
	plain := response(201, "", "Idempotent-Replayed", "true")
	if Attempts(plain) != 0 || GaveUp(plain) || !Replayed(plain) {
		t.Error("a response of another transport is misread")
	}
	for _, resp := range []*http.Response{nil, {}, {Request: post(t.Context(), t, nil)}} {
		if Attempts(resp) != 0 || GaveUp(resp) || Replayed(resp) || KeyOf(resp) != "" || OutcomeOf(resp) != 0 {
			t.Errorf("%v has the key %q and the outcome %s", resp, KeyOf(resp), OutcomeOf(resp))
		}
	}
	for service, want := range map[*Service]bool{ptr(Service{}): true, ptr(Stripe()): true, ptr(Adyen()): false, ptr(Service{Replayed: "X-Again"}): false} {
		base := always(status(201, "Idempotent-Replayed", "true"))
		if resp, _ := do(t, newTransport(t, base, Config{Service: *service}), post(t.Context(), t, nil)); Replayed(resp) != want {
			t.Errorf("%+v: Replayed is %v", *service, Replayed(resp))
		}
	}
}

type recorded struct {
	starts   []CallStart
	attempts []AttemptEnd
	ends     []CallEnd
	inside   int // events whose context is of StartCall
}

type insideKey struct{}

func (r *recorded) StartCall(ctx context.Context, e CallStart) context.Context {
	r.starts = append(r.starts, e)
	return context.WithValue(ctx, insideKey{}, true)
}

func (r *recorded) EndAttempt(ctx context.Context, e AttemptEnd) {
	r.attempts = append(r.attempts, e)
	if ctx.Value(insideKey{}) != nil {
		r.inside++
	}
}

func (r *recorded) EndCall(ctx context.Context, e CallEnd) {
	r.ends = append(r.ends, e)
	if ctx.Value(insideKey{}) != nil {
		r.inside++
	}
}
