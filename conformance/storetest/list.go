package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// listCases are about how operators find records.
var listCases = []testCase{
	{
		conformance.Case{
			ID:     "list-states",
			Rule:   "A listing of some states shows all records in these states and no others, each in its state.",
			Source: "Query.States",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			lapsed, _ := e.lapsed()
			running, done := e.caller(), e.caller()
			running.claimNew()
			done.claimNew()
			done.complete("answer")
			states := map[store.RecordState]store.ID{
				store.StateLapsed: lapsed.id, store.StateRunning: running.id, store.StateCompleted: done.id,
			}
			for _, set := range [][]store.RecordState{
				{},
				{store.StateLapsed},
				{store.StateRunning},
				{store.StateCompleted},
				{store.StateUnreadable},
				{store.StateLapsed, store.StateRunning},
				{store.StateCompleted, store.StateLapsed},
			} {
				var want []store.ID
				for state, id := range states {
					if len(set) == 0 || slices.Contains(set, state) {
						want = append(want, id)
					}
				}
				got := e.listAll(store.Query{States: store.States(set...), Limit: 100})
				e.wantIDs(fmt.Sprintf("of the states %v", set), got, want)
				for _, r := range got {
					if states[r.State] != r.ID {
						e.Errorf("listed %+v", r)
					}
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "list-label",
			Rule:   "A listing of a label shows all records with this label and no others, and a listing of none all but those of probes.",
			Source: "Query.Label, ProbeLabel",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			want := map[string][]store.ID{}
			for _, label := range []string{"", "pay", "pay", "payments", "PAY", store.ProbeLabel} {
				c := e.caller()
				c.label = label
				c.claimNew()
				c.complete("answer")
				want[label] = append(want[label], c.id)
				if label != store.ProbeLabel {
					want["every label"] = append(want["every label"], c.id)
				}
			}
			for _, label := range []string{"pay", "payments", "PAY", "pa", "payment", store.ProbeLabel} {
				e.wantIDs("of the label "+label, e.listAll(store.Query{Label: label, Limit: 100}), want[label])
			}
			e.wantIDs("of every label", e.listAll(store.Query{Limit: 100}), want["every label"])
		},
	},
	{
		conformance.Case{
			ID:     "list-age",
			Rule:   "A listing by age shows the records whose last attempt claimed them at least that long ago, and no younger ones.",
			Source: "Query.OlderThan",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			e.unhurried(func(d time.Duration) bool {
				old := e.caller()
				old.claimNew()
				if e.fixture.Atomic {
					old.complete("answer")
				}
				e.advance(2 * d)
				start := e.now()
				young := e.caller()
				young.claimNew()
				if e.fixture.Atomic {
					young.complete("answer")
				}
				got := e.listAll(store.Query{OlderThan: d, Limit: 100})
				if e.now().Sub(start) >= d {
					return false
				}
				lists := func(c caller) bool {
					return slices.ContainsFunc(got, func(r store.Record) bool { return r.ID == c.id })
				}
				if !lists(old) || lists(young) {
					e.Errorf("of records claimed %v and 0s ago, those older than %v: %+v", 2*d, d, got)
				}
				return true
			})
		},
	},
	{
		conformance.Case{
			ID:     "list-pages",
			Rule:   "The pages of a listing have at most as many records as asked for, and together every record that is there all the time, while others come and go.",
			Source: "Inspector.List, Page.Next",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			var want []store.ID
			for range 30 {
				c := e.caller()
				c.label = "stay"
				c.claimNew()
				c.complete("answer")
				want = append(want, c.id)
			}
			stop := make(chan struct{})
			var others sync.WaitGroup
			others.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					c := e.caller()
					if _, err := c.tryClaim(); err != nil {
						return
					}
					if n%2 == 0 {
						_ = c.tryComplete("answer")
					} else {
						c.release()
					}
					conformance.Sleep(e, time.Millisecond)
				}
			})
			defer others.Wait()
			defer close(stop)
			for _, limit := range []int{1, 7, 30, 1000} {
				e.wantIDs(fmt.Sprintf("in pages of %d", limit), e.listAll(store.Query{Label: "stay", Limit: limit}), want)
			}
		},
	},
	{
		conformance.Case{
			ID:     "list-finds",
			Rule:   "A listing selects before it counts: some lapsed records among many that are completed are found, in pages of one record.",
			Source: "Inspector.List, Query.States",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			for range 40 {
				c := e.caller()
				c.claimNew()
				c.complete("answer")
			}
			// Several, for one may happen to be the first that a listing looks at.
			var want []store.ID
			for _, stuck := range e.lapsedAll(4) {
				want = append(want, stuck.id)
			}
			e.wantIDs("of what lapsed", e.listAll(store.Query{States: store.States(store.StateLapsed), Limit: 1}), want)
		},
	},
	{
		conformance.Case{
			ID:     "list-cursor",
			Rule:   "A cursor that this store did not return is ErrInvalid.",
			Source: "Inspector.List, Query.After",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for range 3 {
				c := e.caller()
				c.claimNew()
				c.complete("answer")
			}
			for _, cursor := range []string{
				"x", "0", "1234", "\x00", "memory-0-0-", "redis-0-0", "postgres-0", strings.Repeat("a", 64), strings.Repeat("0", 4096), "' OR 1=1 --",
			} {
				ctx, cancel := e.call()
				page, err := ability[store.Inspector](e.one).List(ctx, store.Query{After: cursor, Limit: 1})
				cancel()
				if !errors.Is(err, store.ErrInvalid) {
					e.Errorf("list after %.20q: %+v, %v; want ErrInvalid", cursor, page, err)
				}
				e.checkError("list", err)
			}
		},
	},
	{
		conformance.Case{
			ID:     "usage",
			Rule:   "A store names each of its resources once, in lower case, with at most as much in use as it allows, while attempts come and go.",
			Source: "Meter, Usage",
			Needs:  []conformance.Need{conformance.Meter},
		},
		func(e *env) {
			first := e.caller()
			for _, step := range []func(){func() {}, func() { first.claimNew() }, func() { first.complete("answer") }} {
				step()
				names := map[string]bool{}
				for _, u := range ability[store.Meter](e.one).Usage() {
					if names[u.Name] || u.Name == "" || u.Name != strings.ToLower(u.Name) || len(u.Name) > 20 {
						e.Errorf("the name of a resource is used twice or misspelt: %+v", u)
					}
					if names[u.Name] = true; u.Used < 0 || u.Waiting < 0 || u.Limit < 0 || u.Limit > 0 && u.Used > u.Limit {
						e.Errorf("more in use than there is: %+v", u)
					}
				}
				if len(names) == 0 {
					e.Error("a store that is a Meter names no resource")
				}
			}
		},
	},
}

// listed returns the record of the caller as a listing shows it.
func (c caller) listed() store.Record {
	c.env.Helper()
	all := c.env.listAll(store.Query{Limit: store.MaxPage})
	i := slices.IndexFunc(all, func(r store.Record) bool { return r.ID == c.id })
	if i < 0 {
		c.env.Fatalf("the record is missing from %d in the listing", len(all))
	}
	return all[i]
}

// listAll follows a listing to its end, and checks every page for the properties of all
// pages.
func (e *env) listAll(q store.Query) []store.Record {
	e.Helper()
	const mostPages = 100_000
	var all []store.Record
	for range mostPages {
		ctx, cancel := e.call()
		page, err := ability[store.Inspector](e.two).List(ctx, q)
		cancel()
		e.checkError("list", err)
		if err != nil {
			e.Fatalf("list: %v, want success", err)
		}
		if len(page.Records) > q.Limit {
			e.Fatalf("%d records in a page of at most %d", len(page.Records), q.Limit)
		}
		if page.Scanned < len(page.Records) || page.Total < 0 {
			e.Errorf("a page of %d records looked at %d, of %d", len(page.Records), page.Scanned, page.Total)
		}
		for _, r := range page.Records {
			if r.Payload != nil {
				e.Errorf("a payload is listed: %+v", r)
			}
		}
		all = append(all, page.Records...)
		if q.After = page.Next; q.After == "" {
			return all
		}
	}
	e.Fatalf("a listing does not end after %d pages", mostPages)
	return nil
}

// wantIDs demands that a listing has exactly these records, each at least once.
func (e *env) wantIDs(what string, got []store.Record, want []store.ID) {
	e.Helper()
	missing := map[store.ID]bool{}
	for _, id := range want {
		missing[id] = true
	}
	for _, r := range got {
		if !slices.Contains(want, r.ID) {
			e.Errorf("the listing %s has %+v, which it should not have", what, r)
		}
		delete(missing, r.ID)
	}
	if len(missing) > 0 {
		e.Errorf("the listing %s lacks %d of %d records", what, len(missing), len(want))
	}
}
