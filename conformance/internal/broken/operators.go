package broken

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/store"
)

// Inspect implements [store.Inspector].
func (s *Store) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	c := &call{ctx: ctx, op: inspect, id: &id, record: &store.Record{}}
	s.run(c, func() {
		*c.record, c.err = s.right.Inspect(ctx, id)
		s.show(c, c.record)
	})
	return *c.record, c.err
}

// show makes an unreadable record of a damaged one, and lets a flaw change what is shown.
func (s *Store) show(c *call, r *store.Record) {
	if fence, unreadable := s.damaged[*c.id]; unreadable {
		c.err, *r = nil, store.Record{ID: *c.id, State: store.StateUnreadable, Fence: fence}
		return
	}
	if c.err == nil {
		s.apply(&call{Store: s, known: s.knownOf(&r.ID), op: shown, id: &r.ID, now: c.now, record: r}, after)
	}
}

// cursorStart is how the cursors of this store start.
const cursorStart = "broken:"

// List implements [store.Inspector]. It reads all records to return a page of them.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	c := &call{ctx: ctx, op: list, id: &store.ID{}, query: &q, page: &store.Page{}}
	s.run(c, func() {
		digits, ours := strings.CutPrefix(q.After, cursorStart)
		after, err := hex.DecodeString(digits)
		if q.After != "" && !ours || err != nil {
			c.err = fmt.Errorf("%w: Query.After is not a cursor of this store", store.ErrInvalid)
			return
		}
		all, _ := s.right.List(ctx, store.Query{Limit: store.MaxPage})
		probes, _ := s.right.List(ctx, store.Query{Limit: store.MaxPage, Label: store.ProbeLabel})
		all.Records = append(all.Records, probes.Records...)
		slices.SortFunc(all.Records, func(a, b store.Record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		for _, r := range all.Records {
			if bytes.Compare(r.ID[:], after) <= 0 {
				continue
			}
			c.ids = append(c.ids, r.ID)
			if c.page.Next != "" {
				continue
			}
			if len(c.page.Records) == q.Limit {
				c.page.Next = cursorStart + c.page.Records[q.Limit-1].ID.String()
				continue
			}
			id := r.ID
			s.show(&call{id: &id, now: c.now}, &r)
			c.page.Scanned++
			if q.Selects(&r, c.now) {
				c.page.Records = append(c.page.Records, r)
			}
		}
	})
	return *c.page, c.err
}

// Count implements [store.Counter].
func (s *Store) Count(ctx context.Context, open func(*store.Record)) (map[store.LabelState]int, error) {
	c := &call{ctx: ctx, op: count, id: &store.ID{}, page: &store.Page{}}
	s.run(c, func() {
		*c.page, c.err = s.right.List(ctx, store.Query{Limit: store.MaxPage})
		for i := range c.page.Records {
			r := &c.page.Records[i]
			id := r.ID
			s.show(&call{id: &id, now: c.now}, r)
		}
	})
	counts := map[store.LabelState]int{}
	for i := range c.page.Records {
		if r := &c.page.Records[i]; r.State.WasCompleted() {
			counts[store.LabelState{Label: r.Label, State: r.State}]++
		} else {
			open(r)
		}
	}
	return counts, c.err
}

// Resolve implements [store.Inspector].
func (s *Store) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	if err := r.Validate(); err != nil {
		return err
	}
	c := &call{ctx: ctx, op: resolve, id: &id, resolve: &r}
	s.run(c, func() {
		fence, unreadable := s.damaged[id]
		switch {
		case unreadable && r.State == store.StateUnreadable && r.Fence == fence:
			c.forget(id) //nolint:contextcheck // it has the context of c
			return
		case unreadable || r.State == store.StateUnreadable:
			c.err = store.ErrRecordChanged
			return
		}
		c.err = s.right.Resolve(ctx, id, r)
		switch {
		case c.err == nil && r.Forget:
			s.note(id, func(k *known) { *k = known{} })
		case c.err == nil:
			s.note(id, func(k *known) {
				k.done, k.doneAt, k.reason, k.resolved = &store.CompleteRequest{Payload: r.Payload}, c.now, "", c.now.Add(r.Retention)
				if until := k.resolved.Add(k.last.Horizon); k.valid.Before(until) {
					k.valid = until
				}
			})
		}
		s.wake(c)
	})
	return c.err
}

// Purge implements [store.Purger].
func (s *Store) Purge(ctx context.Context, limit int) (deleted int, err error) {
	c := &call{ctx: ctx, op: purge, id: &store.ID{}, limit: &limit}
	s.run(c, func() { deleted, c.err = s.right.Purge(ctx, limit) })
	return deleted, c.err
}

// Watch implements [store.Waiter].
func (s *Store) Watch(_ context.Context, id store.ID) (changed <-chan struct{}, stop func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan struct{}, 1)
	s.watches[id] = append(s.watches[id], ch)
	return ch, func() {
		c := &call{op: unwatch, id: &id}
		s.run(c, func() {
			s.watches[id] = slices.DeleteFunc(s.watches[id], func(other chan struct{}) bool { return other == ch })
		})
	}, nil
}

// wake wakes the watches of an ID, unless the flaw is that the call is silent.
func (s *Store) wake(c *call) {
	for _, ch := range s.watches[*c.id] {
		if !c.silent && len(ch) == 0 {
			ch <- struct{}{}
		}
	}
}

// Check implements [store.Checker].
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	c := &call{ctx: ctx, op: check, id: &store.ID{}}
	c.findings = []store.Finding{{Code: "not-for-use", Severity: store.Unsafe, Detail: "this store is for tests of the suite"}}
	s.run(c, func() { c.err = ctx.Err() })
	return c.findings, c.err
}

// Usage implements [store.Meter].
func (s *Store) Usage() []store.Usage {
	c := &call{op: meter, id: &store.ID{}}
	s.run(c, func() { c.usage = s.right.Usage() })
	return c.usage
}
