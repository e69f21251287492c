package storetest

import (
	"context"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

var errorCases = []testCase{
	function("invalid-claim", nil, "ClaimRequest.Validate",
		"A claim outside its documented ranges is ErrInvalid, and leaves nothing behind.",
		func(s *scene) {
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
				c := *s.caller(a)
				spoil(&c.ClaimRequest)
				_, err := c.tryClaim()
				s.report("claim", err, invalid)
			}
			s.must(b.claims(first))
		}),
	function("invalid-complete", nil, "CompleteRequest.Validate",
		"A completion outside its documented ranges is ErrInvalid, and the attempt goes on.",
		func(s *scene) {
			s.must(a.claims(first))
			c := s.caller(a)
			for _, spoil := range []func(*store.CompleteRequest){
				func(q *store.CompleteRequest) { q.Owner = store.Owner{} },
				func(q *store.CompleteRequest) { q.Retention = 0 },
				func(q *store.CompleteRequest) { q.Retention = store.MaxDuration + 1 },
				func(q *store.CompleteRequest) { q.Payload = make([]byte, store.MaxPayload+1) },
			} {
				r := store.CompleteRequest{ID: c.ID, Owner: c.Owner, Payload: []byte("invalid"), Policy: c.Policy}
				spoil(&r)
				s.report("complete", tell(c, "complete", func(ctx context.Context) error { return c.store.Complete(ctx, r) }), invalid)
			}
			s.must(b.claims(inProgress), a.completes("answer"), b.claims(replay("answer")))
		}),
	function("invalid-renew", nil, "RenewRequest.Validate",
		"A renewal outside its documented ranges is ErrInvalid.",
		func(s *scene) {
			s.must(a.claims(first))
			for _, bad := range []actor{a.lease(span{}), a.lease(span{plus: store.MaxDuration + 1}), a.lease(long).owner(store.Owner{})} {
				_, err := s.caller(bad).tryRenew()
				s.report("renew", err, invalid)
			}
		}),
	scenario("durations-extreme", nil, "MinDuration, MaxDuration",
		"The shortest and the longest durations are accepted: 1 ms and ten years.",
		a.lease(span{plus: store.MaxDuration}).keep(span{plus: store.MaxDuration}).claims(first.leaving(store.MaxDuration-hour, store.MaxDuration)),
		b.claims(inProgress), a.completes("answer"), b.claims(replay("answer")),
		a.of(1).lease(span{plus: store.MinDuration}).keep(span{plus: store.MinDuration}).claims(first),
		passes(span{plus: store.MinDuration}), b.of(1).claims(first)),
	scenario("error-text", nil, "Store, Errors",
		"An error wraps exactly one sentinel, and contains no owner and no payload.",
		a.claims(first), b.completes("a payload that nobody may log", lost), a.of(1).completes("a payload that nobody may log", lost),
		a.keep(span{}).completes("a payload that nobody may log", invalid)),
	function("context-ended", nil, "Store, Errors",
		"With an ended context a call returns at once, with an answer or a sentinel, and leaves the store consistent.",
		testEndedContext),
}

func testEndedContext(s *scene) {
	c := s.caller(a)
	err := c.prompt("claim", func(ctx context.Context) error {
		_, err := c.store.Claim(ctx, c.ClaimRequest)
		return err
	})
	running := a.of(1)
	if err != nil { // given up, as the engine does: it may have been executed
		s.must(a.releases(), b.claims(first))
		running = b
	} else {
		s.must(b.claims(inProgress), running.claims(first))
	}

	c = s.caller(running)
	_ = c.prompt("renew", func(ctx context.Context) error {
		_, err := c.store.Renew(ctx, []store.RenewRequest{{ID: c.ID, Owner: c.Owner, Lease: hour}})
		return err
	})
	_ = c.prompt("complete", func(ctx context.Context) error {
		return c.store.Complete(ctx, store.CompleteRequest{ID: c.ID, Owner: c.Owner, Payload: []byte("answer"), Policy: c.Policy})
	})
	s.must(running.completes("answer"), d.of(running.operation).claims(replay("answer")))

	s.must(a.of(2).claims(first))
	c = s.caller(a.of(2))
	_ = c.prompt("release", func(ctx context.Context) error { return c.store.Release(ctx, c.ID, c.Owner) })
	s.must(a.of(2).releases(), b.of(2).claims(first), b.of(2).releases())

	s.must(a.of(3).claims(first))
	c = s.caller(a.of(3))
	_ = c.prompt("unknown", func(ctx context.Context) error {
		return c.store.Unknown(ctx, store.UnknownRequest{ID: c.ID, Owner: c.Owner, Reason: bankTimedOut})
	})
	s.must(a.of(3).saysUnknown(bankTimedOut), b.of(3).claims(lapsed))
}

// prompt makes a call with an ended context and fails unless it returns without waiting.
func (c *caller) prompt(what string, call func(context.Context) error) error {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	answer := make(chan error, 1)
	go func() { answer <- call(ctx) }()
	patience := time.NewTimer(callLimit)
	defer patience.Stop()
	select {
	case err := <-answer:
		c.checkError(what, err)
		return err
	case <-patience.C:
		c.Errorf("%s: no answer within %v after the context ended", what, callLimit)
		if c.fixture.Advance != nil {
			c.FailNow()
		}
		return <-answer // a bubble ends with its last goroutine
	}
}
