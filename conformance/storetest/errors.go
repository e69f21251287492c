package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
)

var errorCases = []testCase{
	{
		conformance.Case{
			ID:     "invalid-claim",
			Rule:   "A claim outside its documented ranges is ErrInvalid, and leaves nothing behind.",
			Source: "ClaimRequest.Validate",
		},
		func(r *rig) {
			first := r.party()
			for _, spoil := range []func(*reprise.ClaimRequest){
				func(q *reprise.ClaimRequest) { q.Owner = reprise.Owner{} },
				func(q *reprise.ClaimRequest) { q.Lease = 0 },
				func(q *reprise.ClaimRequest) { q.Lease = -time.Second },
				func(q *reprise.ClaimRequest) { q.Lease = reprise.MinDuration - 1 },
				func(q *reprise.ClaimRequest) { q.Lease = reprise.MaxDuration + 1 },
				func(q *reprise.ClaimRequest) { q.Retention = 0 },
				func(q *reprise.ClaimRequest) { q.Retention = reprise.MaxDuration + 1 },
				func(q *reprise.ClaimRequest) { q.MaxAttempts = -1 },
			} {
				request := first.claimRequest()
				spoil(&request)
				ctx, cancel := r.call()
				_, err := r.one.Claim(ctx, request)
				cancel()
				r.wantInvalid("claim", err)
			}
			first.rival().anew()
		},
	},
	{
		conformance.Case{
			ID:     "invalid-complete",
			Rule:   "A completion outside its documented ranges is ErrInvalid, and the attempt goes on.",
			Source: "CompleteRequest.Validate",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			for _, spoil := range []func(*reprise.CompleteRequest){
				func(q *reprise.CompleteRequest) { q.Owner = reprise.Owner{} },
				func(q *reprise.CompleteRequest) { q.Retention = 0 },
				func(q *reprise.CompleteRequest) { q.Retention = reprise.MaxDuration + 1 },
				func(q *reprise.CompleteRequest) { q.Payload = make([]byte, reprise.MaxPayload+1) },
			} {
				request := reprise.CompleteRequest{ID: first.id, Owner: first.owner, Payload: []byte("invalid"), Retention: long}
				spoil(&request)
				ctx, cancel := r.call()
				err := r.one.Complete(ctx, request)
				cancel()
				r.wantInvalid("complete", err)
			}
			first.rival().claim(reprise.InProgress)
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
		func(r *rig) {
			first := r.party()
			first.anew()
			for _, bad := range []reprise.RenewRequest{
				{ID: first.id, Owner: first.owner},
				{ID: first.id, Owner: first.owner, Lease: reprise.MaxDuration + 1},
				{ID: first.id, Lease: long},
			} {
				ctx, cancel := r.call()
				_, err := r.one.Renew(ctx, []reprise.RenewRequest{bad})
				cancel()
				r.wantInvalid("renew", err)
			}
		},
	},
	{
		conformance.Case{
			ID:     "durations-extreme",
			Rule:   "The shortest and the longest durations are taken: 1 ms and ten years.",
			Source: "MinDuration, MaxDuration",
		},
		func(r *rig) {
			first := r.party()
			first.lease, first.retention = reprise.MaxDuration, reprise.MaxDuration
			if got := first.anew(); !got.Atomic && got.Remaining < first.lease-long {
				r.Errorf("%v remain of a new lease of %v", got.Remaining, first.lease)
			}
			first.rival().claim(reprise.InProgress)
			first.complete("answer")
			first.rival().replay("answer")

			brief := r.party()
			brief.lease, brief.retention = reprise.MinDuration, reprise.MinDuration
			brief.anew()
			if !r.fixture.Atomic { // its claim has no lease to run out
				r.advance(reprise.MinDuration)
				brief.rival().anew()
			}
		},
	},
	{
		conformance.Case{
			ID:     "error-text",
			Rule:   "An error wraps exactly one sentinel, and contains no owner and no payload.",
			Source: "Store, Errors",
		},
		func(r *rig) {
			first := r.party()
			first.anew()
			first.rival().completeLost("a payload that nobody may log")
			nobody := r.party()
			nobody.completeLost("a payload that nobody may log")
			first.retention = 0
			if err := first.tryComplete("a payload that nobody may log"); err == nil {
				r.Error("a completion without a retention succeeded")
			}
		},
	},
	{
		conformance.Case{
			ID:     "context-ended",
			Rule:   "With a context that has ended a call returns at once, by a definite answer or a sentinel, and a later call finds the store in order.",
			Source: "Store, Errors",
		},
		func(r *rig) {
			first := r.party()
			err := r.atOnce("claim", func(ctx context.Context) error {
				_, err := first.store.Claim(ctx, first.claimRequest())
				return err
			})
			if err != nil { // given up, as the engine does: it may have been executed
				first.release()
			}
			first = first.rival()
			if err != nil {
				first.anewSoon()
			} else {
				first.claim(reprise.InProgress)
				first = r.party()
				first.anew()
			}

			_ = r.atOnce("renew", func(ctx context.Context) error {
				_, err := first.store.Renew(ctx, []reprise.RenewRequest{{ID: first.id, Owner: first.owner, Lease: long}})
				return err
			})
			err = r.atOnce("complete", func(ctx context.Context) error {
				return first.store.Complete(ctx, reprise.CompleteRequest{ID: first.id, Owner: first.owner, Payload: []byte("answer"), Retention: long})
			})
			if !r.fixture.Atomic || err == nil { // else it may have been rolled back
				first.complete("answer")
				first.rival().replay("answer")
			}

			last := r.party()
			last.anew()
			_ = r.atOnce("release", func(ctx context.Context) error { return last.store.Release(ctx, last.id, last.owner) })
			last.release()
			last.rival().anewSoon()
		},
	},
}

// anewSoon is [party.anew] after a call with a context that had ended. Such a call may have cut the session of an Atomic claim, whose
// end the server notices on its own, a little later.
func (p party) anewSoon() {
	p.rig.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for start := time.Now(); p.rig.fixture.Atomic && time.Since(start) < callLimit; <-poll.C {
		if got, err := p.tryClaim(); err != nil || got.Outcome != reprise.InProgress {
			break // the owner asks once more, for the verdict
		}
	}
	p.anew()
}

// wantInvalid demands ErrInvalid.
func (r *rig) wantInvalid(what string, err error) {
	r.Helper()
	r.checkError(what, err)
	if !errors.Is(err, reprise.ErrInvalid) {
		r.Errorf("%s: error %v, want ErrInvalid", what, err)
	}
}

// atOnce makes a call with a context that has ended and demands that it returns without waiting.
func (r *rig) atOnce(what string, call func(context.Context) error) error {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	answer := make(chan error, 1)
	go func() { answer <- call(ctx) }()
	patience := time.NewTimer(callLimit)
	defer patience.Stop()
	select {
	case err := <-answer:
		r.checkError(what, err)
		return err
	case <-patience.C:
		r.Errorf("%s: no answer for %v, though the context has ended", what, callLimit)
		if r.fixture.Advance != nil {
			r.FailNow()
		}
		return <-answer // a bubble ends with its last goroutine
	}
}
