package lincheck

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// client is one caller of a store.
type client struct {
	*recorder
	number int
	store  store.Store
	dice   *rand.Rand
	d      *deployment
	ids    []store.ID
	owned  []held // the attempts that it began and may end
	others *strangers
}

type held struct {
	id    store.ID
	owner store.Owner
	print store.Fingerprint
}

// strangers are the attempts of all clients, so that one may act in the name of another.
type strangers struct {
	mu  sync.Mutex
	all []held
}

func (s *strangers) add(a held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, a)
}

func (s *strangers) pick(dice *rand.Rand) (held, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return held{}, false
	}
	return s.all[len(s.all)-1-dice.IntN(min(len(s.all), 20))], true
}

// run makes the client's calls.
func (c *client) run(ctx context.Context) {
	for range cmp.Or(c.d.pace.calls, calls) {
		c.once(ctx)
		between := cmp.Or(c.d.pace.between, 4*time.Millisecond)
		time.Sleep(c.upTo(between)) //nolint:forbidigo // clients take their time
	}
	for _, a := range c.owned { // so that no transaction is left open
		c.call(ctx, input{kind: release, id: a.id, owner: a.owner})
	}
}

// once makes one call.
func (c *client) once(ctx context.Context) {
	roll := c.dice.IntN(100)
	if roll < 50 {
		c.begin(ctx)
		return
	}
	a, ok := c.others.pick(c.dice)
	if mine := len(c.owned); mine > 0 && c.dice.IntN(100) < 75 {
		a, ok = c.owned[c.dice.IntN(mine)], true
	}
	if !ok {
		return
	}
	switch {
	case roll < 65:
		payload := fmt.Sprintf("%d of %d", c.dice.Uint32(), c.number)
		c.call(ctx, input{kind: complete, id: a.id, owner: a.owner, print: a.print, policy: c.policy(10, 60), payload: payload})
		c.forget(a)
	case roll < 75 && c.dice.IntN(2) == 0:
		c.forget(a) // and so it lapses
	case roll < 90:
		c.call(ctx, input{kind: renew, id: a.id, owner: a.owner, lease: c.between(5, 40)})
	case roll >= 97:
		out := c.call(ctx, input{kind: unknown, id: a.id, owner: a.owner})
		if out.accepted { // otherwise it is its owner's to say so again, or to release
			c.forget(a)
		}
	default:
		c.call(ctx, input{kind: release, id: a.id, owner: a.owner})
		c.forget(a)
	}
}

func (c *client) forget(a held) {
	if c.dice.IntN(100) < 20 {
		return // and so it says it again
	}
	if i := slices.Index(c.owned, a); i >= 0 {
		c.owned = slices.Delete(c.owned, i, i+1)
	}
}

func (c *client) between(least, most int) time.Duration {
	if unit := c.d.pace.unit; unit > 0 {
		return time.Duration(least+c.dice.IntN(most-least)) * unit
	}
	return time.Duration(least*1000+c.dice.IntN((most-least)*1000)) * time.Microsecond
}

func (c *client) upTo(most time.Duration) time.Duration {
	return time.Duration(c.dice.Int64N(most.Microseconds())) * time.Microsecond
}

// begin claims an ID, as a new owner or as one that claimed before.
func (c *client) begin(ctx context.Context) {
	in := input{
		kind: claim, id: c.ids[c.dice.IntN(len(c.ids))], owner: c.newOwner(), lease: c.between(5, 40), policy: c.policy(20, 120),
		takeover: c.dice.IntN(100) < 75,
	}
	if c.dice.IntN(100) < 10 {
		in.print[0] = 1
	}
	if c.dice.IntN(100) < 30 {
		in.attempts = 3
	}
	if n := len(c.owned); n > 0 && c.dice.IntN(100) < 25 {
		a := c.owned[c.dice.IntN(n)]
		in.id, in.owner, in.print = a.id, a.owner, a.print
	}
	if a, ok := c.others.pick(c.dice); ok && c.dice.IntN(100) < 5 {
		in.id, in.owner, in.print = a.id, a.owner, a.print
	}
	out := c.call(ctx, in)
	if a := (held{in.id, in.owner, in.print}); out.unknown || out.outcome == store.Claimed {
		c.owned = append(c.owned, a)
		c.others.add(a)
	}
}

// policy returns a policy with a retention in a range of milliseconds, half of the time
// with a horizon.
func (c *client) policy(least, most int) store.Policy {
	p := store.Policy{AtMostOnce: c.dice.IntN(100) < 20, Retention: c.between(least, most)}
	if c.dice.IntN(2) == 0 {
		p.Horizon = c.between(least, most)
	}
	return p
}

func (c *client) newOwner() (o store.Owner) {
	binary.BigEndian.PutUint64(o[:], c.dice.Uint64())
	binary.BigEndian.PutUint64(o[8:], uint64(c.number)+1)
	return o
}

// call makes a call, of which some are cancelled and some lose their result, and records
// it.
func (c *client) call(ctx context.Context, in input) output {
	loses := c.dice.IntN(100) < 5
	if c.dice.IntN(100) < 4 {
		short, cancel := context.WithTimeout(ctx, time.Duration(c.dice.IntN(1500))*time.Microsecond)
		defer cancel()
		ctx = short
	}
	from := c.now()
	out, err := c.ask(ctx, in)
	out.at = window{from, c.now() + time.Microsecond}
	out.tick, out.late = c.d.clock.tick, c.d.clock.late
	switch {
	case err == nil && !loses:
	case err == nil: // it took place, and its result is lost
		out = output{at: out.at, tick: out.tick, late: out.late, unknown: true}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy):
		c.add(c.number, in, output{at: out.at, refused: err.Error()})
		return output{}
	case errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrNotReplicated):
		out = output{at: window{from, never}, tick: out.tick, late: out.late, unknown: true}
	case errors.Is(err, store.ErrNotApplied):
		out.accepted = false
		in.kind, out = release, output{at: out.at} // the transaction is gone
	default:
		c.mu.Lock()
		c.wrong = append(c.wrong, fmt.Errorf("%s: %w", in.kind, err))
		c.mu.Unlock()
		return output{}
	}
	c.add(c.number, in, out)
	return out
}

// ask translates a call to the store and its result back.
func (c *client) ask(ctx context.Context, in input) (output, error) {
	switch in.kind {
	case claim:
		res, err := c.store.Claim(ctx, store.ClaimRequest{
			ID: in.id, Owner: in.owner, Fingerprint: in.print, Lease: in.lease, Policy: in.policy, Takeover: in.takeover, MaxAttempts: in.attempts,
		})
		lapsed := res.Outcome == store.Claimed && res.Remaining <= 0
		return output{
			answer: answer{outcome: res.Outcome, attempt: res.Attempt, payload: string(res.Payload)},
			fence:  res.Fence, lapsed: lapsed,
			remaining: res.Remaining, measured: c.d.clock.tells(res, lapsed),
		}, err
	case renew:
		res, err := c.store.Renew(ctx, []store.RenewRequest{{ID: in.id, Owner: in.owner, Lease: in.lease}})
		if err != nil {
			return output{}, err
		}
		return output{answer: answer{renewal: res[0]}}, nil
	case complete:
		err := c.store.Complete(ctx, store.CompleteRequest{ID: in.id, Owner: in.owner, Payload: []byte(in.payload), Policy: in.policy})
		if errors.Is(err, store.ErrLeaseLost) {
			return output{}, nil
		}
		return output{answer: answer{accepted: err == nil}}, err
	case unknown:
		err := c.store.Unknown(ctx, store.UnknownRequest{ID: in.id, Owner: in.owner, Reason: "a history"})
		if errors.Is(err, store.ErrLeaseLost) {
			return output{}, nil
		}
		return output{answer: answer{accepted: err == nil}}, err
	default:
		return output{}, c.store.Release(ctx, in.id, in.owner)
	}
}
