package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// sight is what an operator must see of a record, besides what every record shows.
type sight func(*caller, *store.Record) error

// leaseOf and validFor bound what remains of the lease and of the validity.
func leaseOf(low, high time.Duration) sight {
	return func(_ *caller, r *store.Record) error { return between("the lease", r.Lease, low, high) }
}

func validFor(low, high time.Duration) sight {
	return func(_ *caller, r *store.Record) error { return between("the validity", r.Validity, low, high) }
}

func between(what string, got, low, high time.Duration) error {
	if got < low || got > high {
		return fmt.Errorf("%s is %v, want %v to %v", what, got, low, high)
	}
	return nil
}

// shows inspects the record of the actor's last claim.
func (p actor) shows(want store.RecordState, more ...sight) step {
	return p.call("has a record that is "+want.String(), func(_ *scene, c *caller) error {
		got, err := c.tryInspect()
		if err != nil {
			return wantError("inspect", err, nil)
		}
		c.seen = got.Fence
		payload := ""
		if want == store.StateCompleted {
			payload = c.payload
		}
		if string(got.Payload) != payload {
			return fmt.Errorf("inspected the payload %.64q, want %.64q", got.Payload, payload)
		}
		return c.checkRecord(&got, want, more)
	})
}

// isListed finds the record in a listing, which shows what an inspection does, but for
// the payload.
func (p actor) isListed(want store.RecordState, more ...sight) step {
	return p.call("is listed as "+want.String(), func(s *scene, c *caller) error {
		all, err := s.list(store.Query{Limit: store.MaxPage})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(r store.Record) bool { return r.ID == c.ID })
		if i < 0 {
			return fmt.Errorf("the record is missing from %d in the listing", len(all))
		}
		return c.checkRecord(&all[i], want, more)
	})
}

// checkRecord compares a record with what is known of it.
func (c *caller) checkRecord(got *store.Record, want store.RecordState, more []sight) error {
	if got.ID != c.ID || got.State != want {
		return fmt.Errorf("the record of %v is %v, want %v: %+v", got.ID, got.State, want, got)
	}
	if want == unreadable {
		return nil
	}
	c.fence = max(c.fence, got.Fence)
	size, reason := 0, ""
	switch want {
	case store.StateCompleted:
		size = len(c.payload)
	case store.StateUnknown:
		reason = c.reason
	default:
	}
	over, policy := want.WasCompleted(), c.Policy
	if c.resolved || c.Retention != c.asked { // it is kept as an operator says, or as the completion did
		policy.Retention = got.Retention
	}
	isFalse := func(what string, got, want any) error {
		return fmt.Errorf("the record has %s %+v, want %+v", what, got, want)
	}
	switch {
	case got.Policy != policy:
		return isFalse("the policy", got.Policy, policy)
	case got.Description != c.Description:
		return isFalse("the description", got.Description, c.Description)
	case got.Fingerprint != c.Fingerprint:
		return isFalse("the fingerprint", got.Fingerprint, c.Fingerprint)
	case got.Attempt != c.granted.Attempt:
		return isFalse("the attempt", got.Attempt, c.granted.Attempt)
	case got.Fence != c.granted.Fence:
		return isFalse("the fence", got.Fence, c.granted.Fence)
	case got.Reason != reason:
		return isFalse("the reason", got.Reason, reason)
	case got.Size != size:
		return isFalse("the size", got.Size, size)
	case got.Resolved != (over && c.resolved):
		return isFalse("resolved", got.Resolved, over && c.resolved)
	case (got.Lease > 0) != (want == store.StateRunning) || over && got.Lease != 0:
		return isFalse("the lease", got.Lease, want)
	case got.Validity <= 0 || want == store.StateRunning && got.Validity < got.Lease:
		return isFalse("the validity", got.Validity, "that of what is seen")
	}
	if err := c.checkTimes(got, over); err != nil {
		return err
	}
	for _, check := range more {
		if err := check(c, got); err != nil {
			return err
		}
	}
	return nil
}

// checkTimes checks the instants that a record has in its state. They stay what they were
// until the next attempt, or the next end.
func (c *caller) checkTimes(got *store.Record, over bool) error {
	switch {
	case got.ClaimedAt.IsZero() || got.CompletedAt.IsZero() == over,
		over && got.CompletedAt.Before(got.ClaimedAt):
		return fmt.Errorf("claimed at %v, completed at %v", got.ClaimedAt, got.CompletedAt)
	case !c.claimedAt.IsZero() && !got.ClaimedAt.Equal(c.claimedAt):
		return fmt.Errorf("claimed at %v, and before at %v", got.ClaimedAt, c.claimedAt)
	case !c.completedAt.IsZero() && !got.CompletedAt.Equal(c.completedAt):
		return fmt.Errorf("completed at %v, and before at %v", got.CompletedAt, c.completedAt)
	}
	c.claimedAt, c.completedAt, c.shownAt = got.ClaimedAt, got.CompletedAt, got.ClaimedAt
	return nil
}

// isAbsent inspects and finds no record.
func (p actor) isAbsent() step {
	return p.call("has no record", func(_ *scene, c *caller) error {
		if got, err := c.tryInspect(); !errors.Is(err, store.ErrNotFound) {
			return unlike("inspect", got, err, store.ErrNotFound)
		}
		return nil
	})
}

// verdict is what an operator does with a record that the actor saw last.
type verdict struct {
	state   store.RecordState // that it has, as the operator believes
	payload string            // to be kept; otherwise the record is forgotten
	keep    span
	fence   func(seen uint64) uint64
}

func byHand(keep span) verdict { return verdict{payload: "by hand", keep: keep} }

func forget(state store.RecordState) verdict { return verdict{state: state} }

// as is the verdict of an operator who believes that the record is in a state, later of
// one who believes that it has the next fence, and unseen of one who saw none.
func (v verdict) as(state store.RecordState) verdict { v.state = state; return v }

func (v verdict) later() verdict {
	v.fence = func(seen uint64) uint64 { return seen + 1 }
	return v
}

func (v verdict) unseen() verdict {
	v.fence = func(uint64) uint64 { return 0 }
	return v
}

// isResolved lets an operator decide on the record, who saw it as the actor did.
func (p actor) isResolved(v verdict, want ...error) step {
	return p.call("is resolved", func(_ *scene, c *caller) error {
		r := store.Resolution{State: v.state, Fence: max(c.seen, 1), Forget: v.payload == "", Payload: []byte(v.payload), Retention: v.keep.in(c.env)}
		if v.fence != nil {
			r.Fence = v.fence(r.Fence)
		}
		err := c.tryResolve(r)
		if err == nil && !r.Forget {
			c.payload, c.reason, c.resolved, c.completedAt = v.payload, "", true, time.Time{}
		}
		return wantError("resolve", err, wanted(want))
	})
}

// lists demands that a listing has the records of exactly these actors.
func lists(q store.Query, want ...actor) step { return listsOlder(span{}, q, want...) }

func listsOlder(age span, q store.Query, want ...actor) step {
	return step{"a listing", func(s *scene) error {
		s.Helper()
		q := q // of this run: cases run in parallel
		q.OlderThan = age.in(s.env)
		if q.Limit == 0 {
			q.Limit = 100
		}
		missing := map[store.ID]bool{}
		for _, p := range want {
			missing[s.caller(p).ID] = true
		}
		all, err := s.list(q)
		if err != nil {
			return err
		}
		listed := map[store.ID]bool{}
		for _, r := range all {
			listed[r.ID] = true
		}
		for n, op := range s.operations {
			if listed[op.id] != missing[op.id] {
				return fmt.Errorf("a listing %+v has operation %d: %v, want %v", q, n, listed[op.id], missing[op.id])
			}
		}
		return nil
	}}
}

// counts demands that a count has so many completed and expired records of a label, and
// shows exactly the records of these actors, as an inspection does.
func counts(label string, completed, expired int, want ...actor) step {
	return step{"a count", func(s *scene) error {
		s.Helper()
		ctx, cancel := s.call()
		defer cancel()
		shown := map[store.ID]store.Record{}
		got, err := ability[store.Counter](s.two).Count(ctx, func(r *store.Record) { shown[r.ID] = *r })
		if s.checkError("count", err); err != nil {
			return wantError("count", err, nil)
		}
		for state, n := range map[store.RecordState]int{store.StateCompleted: completed, store.StateExpired: expired} {
			if counted := got[store.LabelState{Label: label, State: state}]; counted != n {
				return fmt.Errorf("counted %d records of %q that are %v, want %d", counted, label, state, n)
			}
		}
		for _, p := range want {
			c := s.caller(p)
			r, is := shown[c.ID]
			inspected, err := c.tryInspect()
			if err != nil {
				return wantError("inspect", err, nil)
			}
			if !is || r.State != inspected.State || r.Label != inspected.Label || r.Fence != inspected.Fence || !r.ClaimedAt.Equal(inspected.ClaimedAt) {
				return fmt.Errorf("a count shows %+v, and an inspection %+v", r, inspected)
			}
			delete(shown, c.ID)
		}
		for n, op := range s.operations {
			if r, is := shown[op.id]; is {
				return fmt.Errorf("a count shows operation %d: %+v", n, r)
			}
		}
		return nil
	}}
}

// mayCount is a count, of a store that can.
func mayCount(count step) step {
	return step{count.says + ", if the store can", func(s *scene) error {
		if _, can := store.As[store.Counter](s.two); !can {
			return nil
		}
		return count.do(s)
	}}
}

// list follows a listing to its end, and checks every page for the properties of all
// pages.
func (e *env) list(q store.Query) ([]store.Record, error) {
	e.Helper()
	const mostPages = 100_000
	var all []store.Record
	for range mostPages {
		page, err := e.page(e.two, q)
		if err != nil {
			return nil, wantError("list", err, nil)
		}
		if len(page.Records) > q.Limit || page.Scanned < len(page.Records) || page.Total < 0 {
			return nil, fmt.Errorf("a page of %d records, of at most %d, looked at %d, of %d", len(page.Records), q.Limit, page.Scanned, page.Total)
		}
		for _, r := range page.Records {
			if r.Payload != nil {
				return nil, fmt.Errorf("a payload is listed: %+v", r)
			}
		}
		all = append(all, page.Records...)
		if q.After = page.Next; q.After == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("a listing does not end after %d pages", mostPages)
}

func (e *env) page(st store.Store, q store.Query) (store.Page, error) {
	ctx, cancel := e.call()
	defer cancel()
	page, err := ability[store.Inspector](st).List(ctx, q)
	e.checkError("list", err)
	return page, err
}

// purges purges until there is no more to do.
func purges(check func(deleted int) bool) step {
	return step{"a purge", func(s *scene) error {
		const limit = 2
		total := 0
		for {
			ctx, cancel := s.call()
			deleted, err := ability[store.Purger](s.two).Purge(ctx, limit)
			cancel()
			s.checkError("purge", err)
			if err != nil || deleted < 0 || deleted > limit {
				return unlike("purge", deleted, err, limit)
			}
			if total += deleted; deleted == limit {
				continue
			}
			if !check(total) {
				return fmt.Errorf("%d records were purged", total)
			}
			return nil
		}
	}}
}

func anyNumber(int) bool { return true }

// mayPurge is a purge, of a store that can.
var mayPurge = step{"a purge, if the store can", func(s *scene) error {
	if _, can := store.As[store.Purger](s.two); !can {
		return nil
	}
	return purges(anyNumber).do(s)
}}

// wakes demands that a step wakes a watch of the actor's ID in the other process, in
// which a claim waits. A watch is a hint, but it may be missing only when something
// fails.
func (p actor) wakes(action step) step {
	return p.call("wakes a watch", func(s *scene, c *caller) error {
		changed, stop, err := c.watch()
		if err != nil {
			return err
		}
		defer stop()
		if err := action.do(s); err != nil {
			return err
		}
		patience := time.NewTimer(callLimit)
		defer patience.Stop()
		select {
		case <-changed:
			return nil
		case <-patience.C:
			return fmt.Errorf("a watch was not woken within %v", callLimit)
		}
	})
}

// watch watches the ID of the caller in the other process, and claims there as a waiter
// does.
func (c *caller) watch() (changed <-chan struct{}, stop func(), err error) {
	c.Helper()
	for until := time.Now().Add(callLimit); ; time.Sleep(time.Second / 10) { //nolint:forbidigo // a store has clocks of its own
		changed, stop, err = ability[store.Waiter](c.two).Watch(c.Context(), c.ID)
		c.checkError("watch", err)
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(until) { // a watch is a hint, and may take too long
			break
		}
	}
	if err != nil {
		return nil, nil, wantError("watch", err, nil)
	}
	waiter := c.rival()
	waiter.Waiting = true
	if got, err := waiter.tryClaim(); err != nil || got.Outcome != store.InProgress {
		stop()
		return nil, nil, unlike("claim", got.Outcome, err, store.InProgress)
	}
	return changed, stop, nil
}
