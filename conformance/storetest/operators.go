package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/conformance"

	reprise "github.com/reprise-go/reprise/core"
)

// operatorCases are about what operators see of records, and how they find them.
var operatorCases = []testCase{
	{
		conformance.Case{
			ID:     "record-label",
			Rule:   "A record shows the label of its claim, also an empty one and one of 32 bytes, until its retention ends.",
			Source: "ClaimRequest.Label, Record",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for _, label := range []string{"", "payments", `a "b"; \ ~`, strings.Repeat("x", reprise.MaxLabel)} {
				first := e.caller()
				first.label = label
				first.claimNew()
				if !e.fixture.Atomic {
					first.wantLabel("in progress")
					first.renew(reprise.Renewed)
					first.wantLabel("renewed")
				}
				first.complete("answer")
				first.wantLabel("completed")
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-label-takeover",
			Rule:   "A record that lapsed, was taken over or was resolved shows the label of its last claim.",
			Source: "ClaimRequest.Label, Record",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.label, first.lease = "payments", e.short()
			first.claimNew()
			e.advance(first.lease)
			first.wantLabel("lapsed")
			second := first.rival()
			second.lease, second.label = e.short(), "refunds" // the policy was renamed by a deploy
			granted := second.claim(reprise.Claimed)
			second.wantLabel("taken over")
			e.advance(second.lease)
			if err := second.resolve(reprise.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: long}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			second.wantLabel("resolved")
		},
	},
	{
		conformance.Case{
			ID:     "record-label-refused",
			Rule:   "A label of more than 32 bytes, or with a byte that is not printable US-ASCII, is ErrInvalid, and nothing is written.",
			Source: "MaxLabel, ClaimRequest.Validate, CompleteRequest.Validate, Query.Validate",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for _, label := range []string{strings.Repeat("x", reprise.MaxLabel+1), "caf\u00e9", "a\nb", "\x00", "\x7f"} {
				first := e.caller()
				first.label = label
				_, err := first.tryClaim()
				e.wantInvalid("claim with an invalid label", err)
				first.wantNotFound()
				ctx, cancel := e.call()
				_, err = ability[reprise.Inspector](e.one).List(ctx, reprise.Query{Limit: 1, Label: label})
				cancel()
				e.wantInvalid("list with an invalid label", err)
				first.label = ""
				first.claimNew()
				first.label = label
				e.wantInvalid("complete with an invalid label", first.tryCompleteAs(reprise.ClaimResult{Attempt: 1, Fence: 1}, "answer"))
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-times",
			Rule:   "A record shows by the store's clock when it was completed and when its last attempt claimed it, which a renewal does not move.",
			Source: "Record.ClaimedAt, Record.CompletedAt",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.claimNew()
			var running reprise.Record
			if !e.fixture.Atomic {
				running = first.inspect()
				e.wantTimes("in progress", running, false)
			}
			e.advance(e.short())
			if !e.fixture.Atomic {
				first.renew(reprise.Renewed)
				if renewed := first.inspect(); !renewed.ClaimedAt.Equal(running.ClaimedAt) {
					e.Errorf("claimed at %v, and after a renewal at %v", running.ClaimedAt, renewed.ClaimedAt)
				}
			}
			first.complete("answer")
			done := first.inspect()
			e.wantTimes("completed", done, true)
			if !e.fixture.Atomic && !done.ClaimedAt.Equal(running.ClaimedAt) {
				e.Errorf("claimed at %v, and after its completion at %v", running.ClaimedAt, done.ClaimedAt)
			}
			if took := done.CompletedAt.Sub(done.ClaimedAt); !e.fixture.Atomic && took < e.short()*9/10 || took > long {
				e.Errorf("completed %v after it was claimed, want %v or a little more", took, e.short())
			}
			e.advance(e.short())
			first.complete("again")
			if again := first.inspect(); !again.CompletedAt.Equal(done.CompletedAt) {
				e.Errorf("completed at %v, and after a repetition at %v", done.CompletedAt, again.CompletedAt)
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-times-takeover",
			Rule:   "A takeover moves the instant at which a record was claimed.",
			Source: "Record.ClaimedAt",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			first, _ := e.lapsed()
			before := first.inspect()
			second := first.rival()
			second.claim(reprise.Claimed)
			after := second.inspect()
			e.wantTimes("taken over", after, false)
			if moved := after.ClaimedAt.Sub(before.ClaimedAt); moved < e.short()*9/10 {
				e.Errorf("claimed %v later than the attempt that lapsed, want %v or more", moved, e.short())
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-size",
			Rule:   "A completed record shows the size of its payload, when it is inspected and when it is listed.",
			Source: "Record.Size",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for _, size := range []int{0, 1, 70_000} {
				first := e.caller()
				first.claimNew()
				first.complete(strings.Repeat("x", size))
				if got := first.inspect(); got.Size != size || len(got.Payload) != size {
					e.Errorf("a payload of %d bytes is shown with size %d, and %d bytes", size, got.Size, len(got.Payload))
				}
				if got := first.listed(); got.Size != size || got.Payload != nil {
					e.Errorf("a payload of %d bytes is listed with size %d, and %d bytes", size, got.Size, len(got.Payload))
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-resolved",
			Rule:   "A record that an operator completed says so, and when; one that its owner completed does not.",
			Source: "Record.Resolved, Inspector.Resolve",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			own := e.caller()
			own.claimNew()
			own.complete("answer")
			if own.inspect().Resolved {
				e.Error("a record that its owner completed says that it was resolved")
			}
			first, granted := e.lapsed()
			if first.inspect().Resolved {
				e.Error("a lapsed record says that it was resolved")
			}
			if err := first.resolve(reprise.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: long}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			for what, got := range map[string]reprise.Record{"inspected": first.inspect(), "listed": first.listed()} {
				if !got.Resolved || got.State != reprise.StateCompleted || got.Attempt != 1 || got.Fence != granted.Fence {
					e.Errorf("%s %+v of a record that was resolved", what, got)
				}
				e.wantTimes(what, got, true)
			}
		},
	},
	{
		conformance.Case{
			ID:     "complete-known",
			Rule:   "A completion that has the fields of its claim ends as one without them: fenced, and with the fingerprint, label, attempt and fence of the record.",
			Source: "CompleteRequest.Attempt, G3 fencing, G6 binding",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.label = "payments"
			granted := first.claimNew()
			stranger := first.rival()
			if err := stranger.tryCompleteAs(granted, "of a stranger"); !errors.Is(err, reprise.ErrLeaseLost) {
				e.Fatalf("complete of a stranger: error %v, want ErrLeaseLost", err)
			}
			if err := first.tryCompleteAs(granted, "answer"); err != nil {
				e.Fatalf("complete: %v, want success", err)
			}
			if err := first.tryCompleteAs(granted, "again"); err != nil {
				e.Fatalf("complete again: %v, want success", err)
			}
			first.rival().replay("answer")
			first.otherRequest().claim(reprise.Mismatch)
			got := first.inspect()
			if got.Label != "payments" || got.Attempt != 1 || !e.fixture.Atomic && got.Fence != granted.Fence || string(got.Payload) != "answer" {
				e.Errorf("inspected %+v after %+v", got, granted)
			}
		},
	},
	{
		conformance.Case{
			ID:     "complete-known-stale",
			Rule:   "A completion that has the fields of its claim writes nothing after a takeover, a release, or the end of the retention; after a lapse alone it succeeds.",
			Source: "CompleteRequest.Attempt, G3 fencing",
			Needs:  []conformance.Need{conformance.Leases},
		},
		func(e *env) {
			lost := func(what string, c caller, granted reprise.ClaimResult) {
				e.Helper()
				if err := c.tryCompleteAs(granted, "stale"); !errors.Is(err, reprise.ErrLeaseLost) {
					e.Errorf("complete %s: error %v, want ErrLeaseLost", what, err)
				}
			}
			zombie, granted := e.lapsed()
			second := zombie.rival()
			second.claim(reprise.Claimed)
			lost("after a takeover", zombie, granted)
			second.complete("answer")
			lost("after the next attempt's completion", zombie, granted)
			second.rival().replay("answer")

			released := e.caller()
			granted = released.claimNew()
			released.release()
			lost("after a release", released, granted)
			released.rival().claimNew()

			gone := e.caller()
			gone.lease, gone.retention = e.short(), e.short()
			granted = gone.claimNew()
			e.advance(e.short())
			lost("of what is not seen any more", gone, granted)
			gone.rival().claimNew()

			late, granted := e.lapsed()
			if err := late.tryCompleteAs(granted, "late"); err != nil {
				e.Errorf("complete of a lapsed attempt: %v, want success", err)
			}
			late.rival().replay("late")
		},
	},
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
			states := map[reprise.RecordState]reprise.ID{
				reprise.StateLapsed: lapsed.id, reprise.StateRunning: running.id, reprise.StateCompleted: done.id,
			}
			for _, set := range [][]reprise.RecordState{
				{},
				{reprise.StateLapsed},
				{reprise.StateRunning},
				{reprise.StateCompleted},
				{reprise.StateUnreadable},
				{reprise.StateLapsed, reprise.StateRunning},
				{reprise.StateCompleted, reprise.StateLapsed},
			} {
				var want []reprise.ID
				for state, id := range states {
					if len(set) == 0 || slices.Contains(set, state) {
						want = append(want, id)
					}
				}
				got := e.listAll(reprise.Query{States: reprise.States(set...), Limit: 100})
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
			Rule:   "A listing of a label shows all records with this label and no others.",
			Source: "Query.Label",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			want := map[string][]reprise.ID{}
			for _, label := range []string{"", "pay", "pay", "payments", "PAY"} {
				c := e.caller()
				c.label = label
				c.claimNew()
				c.complete("answer")
				want[label] = append(want[label], c.id)
				want["every label"] = append(want["every label"], c.id)
			}
			for _, label := range []string{"pay", "payments", "PAY", "pa", "payment"} {
				e.wantIDs("of the label "+label, e.listAll(reprise.Query{Label: label, Limit: 100}), want[label])
			}
			e.wantIDs("of every label", e.listAll(reprise.Query{Limit: 100}), want["every label"])
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
				got := e.listAll(reprise.Query{OlderThan: d, Limit: 100})
				if e.now().Sub(start) >= d {
					return false
				}
				lists := func(c caller) bool {
					return slices.ContainsFunc(got, func(r reprise.Record) bool { return r.ID == c.id })
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
			var want []reprise.ID
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
				e.wantIDs(fmt.Sprintf("in pages of %d", limit), e.listAll(reprise.Query{Label: "stay", Limit: limit}), want)
			}
		},
	},
	{
		conformance.Case{
			ID:     "list-finds",
			Rule:   "A listing selects before it counts: one lapsed record among many that are completed is found, in pages of one record.",
			Source: "Inspector.List, Query.States",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			for range 40 {
				c := e.caller()
				c.claimNew()
				c.complete("answer")
			}
			stuck, _ := e.lapsed()
			e.wantIDs("of what lapsed", e.listAll(reprise.Query{States: reprise.States(reprise.StateLapsed), Limit: 1}), []reprise.ID{stuck.id})
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
				page, err := ability[reprise.Inspector](e.one).List(ctx, reprise.Query{After: cursor, Limit: 1})
				cancel()
				if !errors.Is(err, reprise.ErrInvalid) {
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
				for _, u := range ability[reprise.Meter](e.one).Usage() {
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
	unreadableCase("unreadable-version", UnknownVersion),
	unreadableCase("unreadable-state", UnknownState),
	unreadableCase("unreadable-truncated", Truncated),
	unreadableCase("unreadable-type", WrongType),
	{
		conformance.Case{
			ID:     "resolve-unreadable",
			Rule:   "With fence 0 an operator forgets an unreadable record, whose ID is then new, and no readable one; an answer needs a fence.",
			Source: "Inspector.Resolve, Resolution.Fence",
			Needs:  []conformance.Need{conformance.CorruptHook, conformance.Inspector},
		},
		func(e *env) {
			forget := reprise.Resolution{Forget: true}
			gone, done := e.caller(), e.caller()
			gone.wantChanged("an ID that was never claimed", forget)
			done.claimNew()
			done.complete("answer")
			done.wantChanged("a completed record", forget)
			if !e.fixture.Atomic {
				live := e.caller()
				live.claimNew()
				live.wantChanged("a live attempt", forget)
				live.rival().claim(reprise.InProgress)
				lapsed, _ := e.lapsed()
				lapsed.wantChanged("a lapsed attempt", forget)
				lapsed.completeOwn()
			}
			e.fixture.Corrupt(e, done.id, Truncated)
			e.wantInvalid("resolve with an answer and no fence", done.resolve(reprise.Resolution{Payload: []byte("by hand"), Retention: long}))
			if err := done.resolve(reprise.Resolution{Fence: 1, Forget: true}); !errors.Is(err, reprise.ErrRecordChanged) && !errors.Is(err, reprise.ErrCorrupt) {
				e.Errorf("resolve of an unreadable record with a fence: error %v, want ErrRecordChanged or ErrCorrupt", err)
			}
			if _, err := done.rival().tryClaim(); !errors.Is(err, reprise.ErrCorrupt) {
				e.Errorf("claim of a corrupt record that was not forgotten: %v, want ErrCorrupt", err)
			}
			if err := done.resolve(forget); err != nil {
				e.Fatalf("forget: %v, want success", err)
			}
			done.otherRequest().claimNew()
		},
	},
}

func unreadableCase(id string, how Corruption) testCase {
	return testCase{
		conformance.Case{
			ID: id,
			Rule: "A record that cannot be read (" + string(how) + ") is shown as unreadable, inspected and listed, whatever its age; " +
				"it is neither hidden nor an error of the listing.",
			Source: "StateUnreadable, Inspector",
			Needs:  []conformance.Need{conformance.CorruptHook, conformance.Inspector},
		},
		func(e *env) {
			good, bad := e.caller(), e.caller()
			good.claimNew()
			good.complete("answer")
			bad.claimNew()
			bad.complete("answer")
			e.fixture.Corrupt(e, bad.id, how)
			if got := bad.inspect(); got.ID != bad.id || got.State != reprise.StateUnreadable || got.Payload != nil {
				e.Errorf("inspected %+v", got)
			}
			if got := bad.listed(); got.State != reprise.StateUnreadable {
				e.Errorf("listed %+v", got)
			}
			only := reprise.Query{States: reprise.States(reprise.StateUnreadable), OlderThan: long, Limit: 10}
			e.wantIDs("of what is unreadable", e.listAll(only), []reprise.ID{bad.id})
			if got := good.listed(); got.State != reprise.StateCompleted {
				e.Errorf("listed %+v", got)
			}
		},
	}
}

// completeOwn completes an attempt that lapsed and that nobody took over.
func (c caller) completeOwn() {
	c.env.Helper()
	c.complete("late")
	c.rival().replay("late")
}

// tryCompleteAs completes with the fields of the claim, as the engine does.
func (c caller) tryCompleteAs(granted reprise.ClaimResult, payload string) error {
	c.env.Helper()
	ctx, cancel := c.env.call()
	defer cancel()
	err := c.store.Complete(ctx, reprise.CompleteRequest{
		ID: c.id, Owner: c.owner, Payload: []byte(payload), Retention: c.retention,
		Fingerprint: c.fingerprint, Label: c.label, Attempt: granted.Attempt, Fence: granted.Fence,
	})
	c.checkError("complete", err, payload)
	return err
}

func (c caller) wantLabel(what string) {
	c.env.Helper()
	for how, got := range map[string]reprise.Record{"inspected": c.inspect(), "listed": c.listed()} {
		if got.Label != c.label {
			c.env.Errorf("the record that is %s is %s with the label %q, want %q", what, how, got.Label, c.label)
		}
	}
}

// wantTimes demands the instants that a record has in its state.
func (e *env) wantTimes(what string, r reprise.Record, completed bool) {
	e.Helper()
	switch {
	case r.ClaimedAt.IsZero():
		e.Errorf("%s: not claimed at any time: %+v", what, r)
	case completed != !r.CompletedAt.IsZero():
		e.Errorf("%s: completed at %v", what, r.CompletedAt)
	case completed && r.CompletedAt.Before(r.ClaimedAt):
		e.Errorf("%s: claimed at %v, completed at %v", what, r.ClaimedAt, r.CompletedAt)
	}
}

// listed returns the record of the caller as a listing shows it.
func (c caller) listed() reprise.Record {
	c.env.Helper()
	all := c.env.listAll(reprise.Query{Limit: reprise.MaxPage})
	i := slices.IndexFunc(all, func(r reprise.Record) bool { return r.ID == c.id })
	if i < 0 {
		c.env.Fatalf("the record is missing from %d in the listing", len(all))
	}
	return all[i]
}

// listAll follows a listing to its end, and holds every page to what is true of all.
func (e *env) listAll(q reprise.Query) []reprise.Record {
	e.Helper()
	const mostPages = 100_000
	var all []reprise.Record
	for range mostPages {
		ctx, cancel := e.call()
		page, err := ability[reprise.Inspector](e.two).List(ctx, q)
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
func (e *env) wantIDs(what string, got []reprise.Record, want []reprise.ID) {
	e.Helper()
	missing := map[reprise.ID]bool{}
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
