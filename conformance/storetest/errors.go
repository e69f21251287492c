package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var errorCases = []testCase{
	{
		conformance.Case{
			ID:     "invalid-claim",
			Rule:   "A claim outside its documented ranges is ErrInvalid, and leaves nothing behind.",
			Source: "ClaimRequest.Validate",
		},
		func(e *env) {
			first := e.caller()
			for _, spoil := range []func(*store.ClaimRequest){
				func(q *store.ClaimRequest) { q.Owner = store.Owner{} },
				func(q *store.ClaimRequest) { q.Lease = 0 },
				func(q *store.ClaimRequest) { q.Lease = -time.Second },
				func(q *store.ClaimRequest) { q.Lease = store.MinDuration - 1 },
				func(q *store.ClaimRequest) { q.Lease = store.MaxDuration + 1 },
				func(q *store.ClaimRequest) { q.Retention = 0 },
				func(q *store.ClaimRequest) { q.Retention = store.MaxDuration + 1 },
				func(q *store.ClaimRequest) { q.MaxAttempts = -1 },
			} {
				request := first.claimRequest()
				spoil(&request)
				ctx, cancel := e.call()
				_, err := e.one.Claim(ctx, request)
				cancel()
				e.wantInvalid("claim", err)
			}
			first.rival().claimNew()
		},
	},
	{
		conformance.Case{
			ID:     "invalid-complete",
			Rule:   "A completion outside its documented ranges is ErrInvalid, and the attempt goes on.",
			Source: "CompleteRequest.Validate",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			for _, spoil := range []func(*store.CompleteRequest){
				func(q *store.CompleteRequest) { q.Owner = store.Owner{} },
				func(q *store.CompleteRequest) { q.Retention = 0 },
				func(q *store.CompleteRequest) { q.Retention = store.MaxDuration + 1 },
				func(q *store.CompleteRequest) { q.Payload = make([]byte, store.MaxPayload+1) },
			} {
				request := store.CompleteRequest{ID: first.id, Owner: first.owner, Payload: []byte("invalid"), Policy: store.Policy{Retention: long}}
				spoil(&request)
				ctx, cancel := e.call()
				err := e.one.Complete(ctx, request)
				cancel()
				e.wantInvalid("complete", err)
			}
			first.rival().claim(store.InProgress)
			first.complete("answer")
			first.rival().replay("answer")
		},
	},
	{
		conformance.Case{
			ID:     "invalid-renew",
			Rule:   "A renewal outside its documented ranges is ErrInvalid.",
			Source: "RenewRequest.Validate",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			for _, bad := range []store.RenewRequest{
				{ID: first.id, Owner: first.owner},
				{ID: first.id, Owner: first.owner, Lease: store.MaxDuration + 1},
				{ID: first.id, Lease: long},
			} {
				ctx, cancel := e.call()
				_, err := e.one.Renew(ctx, []store.RenewRequest{bad})
				cancel()
				e.wantInvalid("renew", err)
			}
		},
	},
	{
		conformance.Case{
			ID:     "durations-extreme",
			Rule:   "The shortest and the longest durations are accepted: 1 ms and ten years.",
			Source: "MinDuration, MaxDuration",
		},
		func(e *env) {
			first := e.caller()
			first.lease, first.retention = store.MaxDuration, store.MaxDuration
			if got := first.claimNew(); !got.Atomic && got.Remaining < first.lease-long {
				e.Errorf("%v remain of a new lease of %v", got.Remaining, first.lease)
			}
			first.rival().claim(store.InProgress)
			first.complete("answer")
			first.rival().replay("answer")

			brief := e.caller()
			brief.lease, brief.retention = store.MinDuration, store.MinDuration
			brief.claimNew()
			if !e.fixture.Atomic { // its claim has no lease to run out
				e.advance(store.MinDuration)
				brief.rival().claimNew()
			}
		},
	},
	{
		conformance.Case{
			ID:     "error-text",
			Rule:   "An error wraps exactly one sentinel, and contains no owner and no payload.",
			Source: "Store, Errors",
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			first.rival().completeLost("a payload that nobody may log")
			nobody := e.caller()
			nobody.completeLost("a payload that nobody may log")
			first.retention = 0
			if err := first.tryComplete("a payload that nobody may log"); err == nil {
				e.Error("a completion without a retention succeeded")
			}
		},
	},
	{
		conformance.Case{
			ID:     "context-ended",
			Rule:   "With an ended context a call returns at once, with an answer or a sentinel, and leaves the store consistent.",
			Source: "Store, Errors",
		},
		func(e *env) {
			first := e.caller()
			err := e.wantPrompt("claim", func(ctx context.Context) error {
				_, err := first.store.Claim(ctx, first.claimRequest())
				return err
			})
			if err != nil { // given up, as the engine does: it may have been executed
				first.release()
			}
			first = first.rival()
			if err != nil {
				first.claimNewSoon()
			} else {
				first.claim(store.InProgress)
				first = e.caller()
				first.claimNew()
			}

			_ = e.wantPrompt("renew", func(ctx context.Context) error {
				_, err := first.store.Renew(ctx, []store.RenewRequest{{ID: first.id, Owner: first.owner, Lease: long}})
				return err
			})
			err = e.wantPrompt("complete", func(ctx context.Context) error {
				return first.store.Complete(ctx, store.CompleteRequest{ID: first.id, Owner: first.owner, Payload: []byte("answer"), Policy: store.Policy{Retention: long}})
			})
			if !e.fixture.Atomic || err == nil { // else it may have been rolled back
				first.complete("answer")
				first.rival().replay("answer")
			}

			last := e.caller()
			last.claimNew()
			_ = e.wantPrompt("release", func(ctx context.Context) error { return last.store.Release(ctx, last.id, last.owner) })
			last.release()
			last = last.rival()
			last.claimNewSoon()
			last.release()

			unknown := e.caller()
			unknown.claimNew()
			err = e.wantPrompt("unknown", func(ctx context.Context) error {
				return unknown.store.Unknown(ctx, store.UnknownRequest{ID: unknown.id, Owner: unknown.owner, Reason: "the bank timed out"})
			})
			if !e.fixture.Atomic || err == nil { // else it may have been rolled back
				unknown.unknown("the bank timed out")
				unknown.rival().claim(store.Lapsed)
			}
		},
	},
}

// claimNewSoon is [caller.claimNew] after a call with an ended context. Such a call may
// have closed the session of an Atomic claim, and the server may notice a little later.
func (c caller) claimNewSoon() {
	c.env.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for start := time.Now(); c.env.fixture.Atomic && time.Since(start) < callLimit; <-poll.C {
		if got, err := c.tryClaim(); err != nil || got.Outcome != store.InProgress {
			break // the owner asks once more, for a definite result
		}
	}
	c.claimNew()
}

// wantInvalid demands ErrInvalid.
func (e *env) wantInvalid(what string, err error) {
	e.Helper()
	e.checkError(what, err)
	if !errors.Is(err, store.ErrInvalid) {
		e.Errorf("%s: error %v, want ErrInvalid", what, err)
	}
}

// wantPrompt makes a call with an ended context and fails unless it returns without
// waiting.
func (e *env) wantPrompt(what string, call func(context.Context) error) error {
	e.Helper()
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	answer := make(chan error, 1)
	go func() { answer <- call(ctx) }()
	patience := time.NewTimer(callLimit)
	defer patience.Stop()
	select {
	case err := <-answer:
		e.checkError(what, err)
		return err
	case <-patience.C:
		e.Errorf("%s: no answer within %v after the context ended", what, callLimit)
		if e.fixture.Advance != nil {
			e.FailNow()
		}
		return <-answer // a bubble ends with its last goroutine
	}
}
