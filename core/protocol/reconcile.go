package protocol

import (
	"context"
	"slices"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/store"
)

// Reconcile asks about the requests of this policy whose outcome is unknown, and resolves
// those that ask has an answer for, so that no operator has to. It reads all records of
// the store once, in parts: call it every minute or so, in one process, with a context
// that has no deadline. The policy needs a Label of its own: whatever has it in this
// store is asked about, by whichever guard, job or service.
//
// Make olderThan, the least age of a record's last claim, longer than an attempt may
// take, plus the time for which the downstream system may still execute what it received:
// 1 ms to 10 years.
//
// The function ask finds out, such as from the bank, whether the last attempt of r
// executed its operation, by the key that it passed downstream ([store.Record.Key]). It
// returns one of
//
//	executed:       the response that every retry gets, true
//	not executed:   nil, true: the next request runs
//	not known yet:  nil, false: a later call asks again
//
// Answer "not executed" only if nothing that the attempt sent can still be executed. Up
// to four goroutines call ask, for 30 s at most: [reprise.Engine.Reconcile], which this
// calls, has its other rules, and the errors. A response that a replay could not serve
// counts as Failed: one that Encode of package operate refuses, and every one if
// Seal.Strict is set, since only the client's key could seal it.
func (g *Guard) Reconcile(ctx context.Context, olderThan time.Duration, ask func(ctx context.Context, r reprise.Record) (response *Response, known bool, err error)) (reprise.Reconciled, error) {
	if ask == nil {
		return g.engine.Reconcile(ctx, g.cfg.Label, olderThan, nil)
	}
	return g.engine.Reconcile(ctx, g.cfg.Label, olderThan, func(ctx context.Context, r reprise.Record) (*store.Resolution, error) {
		response, known, err := ask(ctx, r)
		switch {
		case err != nil || !known:
			return nil, err
		case response == nil:
			return &store.Resolution{Forget: true}, nil
		}
		payload, err := g.resolved(response)
		return &store.Resolution{Payload: payload}, err
	})
}

// resolved returns the payload of a response that no handler wrote.
func (g *Guard) resolved(r *Response) ([]byte, error) {
	if r.Stream != nil {
		return nil, record.Refuse("the body is a stream")
	}
	payload, err := record.Encode(&stored{Status: r.Status, Body: r.Body, Fields: slices.Collect(r.Header.All()), Trailers: slices.Collect(r.Trailer.All())})
	if err != nil {
		return nil, err
	}
	return payload, g.cfg.Seal.Readable(payload)
}
