package storetest

import (
	"strings"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// descriptionCases are about a record's description and fingerprint, which tell operators
// which request it is of.
var descriptionCases = []testCase{
	{
		conformance.Case{
			ID:     "description",
			Rule:   "A record shows the description of its claim, also none and one of 255 bytes, in progress and completed.",
			Source: "ClaimRequest.Description, Record.Description",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for i, description := range []string{"", "d", `POST /orders "b"; \ ~`, strings.Repeat("x", store.MaxDescription)} {
				for _, known := range []bool{true, false} { // the fields of the claim, to its completion
					first := e.caller()
					first.description, first.atMostOnce = description, known
					if i%2 == 0 {
						first.label, first.horizon = strings.Repeat("l", store.MaxLabel), long
					}
					granted := first.claimNew()
					if !e.fixture.Atomic {
						first.wantDescription("in progress")
						first.renew(store.Renewed)
						first.wantDescription("renewed")
					}
					if !known {
						waits := first.rival() // which makes some stores write the record
						waits.waiting, waits.description = true, "of the rival"
						waits.claim(store.InProgress)
						granted = store.ClaimResult{}
					}
					if err := first.tryCompleteAs(granted, "answer"); err != nil {
						e.Fatalf("complete: %v, want success", err)
					}
					first.wantDescription("completed")
					if got := first.listed(); got.Description != description {
						e.Errorf("listed with the description %q, want %q", got.Description, description)
					}
					first.rival().replay("answer")
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "description-takeover",
			Rule:   "A takeover writes the description of its claim, or none, which stays when the record is completed or resolved.",
			Source: "Store.Claim; Record.Description",
			Needs:  []conformance.Need{conformance.Leases, conformance.Inspector},
		},
		func(e *env) {
			for _, description := range []string{"of the second", ""} {
				for _, resolved := range []bool{false, true} {
					first := e.caller()
					first.lease, first.description = e.short(), "of the first"
					first.claimNew()
					e.advance(first.lease)
					first.wantDescription("lapsed")
					second := first.rival()
					second.lease, second.description = e.short(), description
					granted := second.claim(store.Claimed)
					second.wantDescription("taken over")
					if !resolved {
						second.complete("answer")
						second.wantDescription("completed after a takeover")
						continue
					}
					e.advance(second.lease)
					if err := second.resolve(store.Resolution{Fence: granted.Fence, Payload: []byte("by hand"), Retention: long}); err != nil {
						e.Fatalf("resolve: %v, want success", err)
					}
					second.wantDescription("resolved")
				}
			}
		},
	},
	{
		conformance.Case{
			ID:     "description-unknown",
			Rule:   "A record whose outcome is unknown shows the description of its claim beside the reason, also after an operator resolved it.",
			Source: "Store.Unknown; Record.Description",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.description, first.horizon = "POST /orders", long
			first.claimNew()
			first.unknown("the bank timed out")
			first.wantDescription("unknown")
			got := first.inspect()
			if got.Reason != "the bank timed out" {
				e.Errorf("the reason is %q", got.Reason)
			}
			if err := first.resolve(store.Resolution{Fence: got.Fence, Payload: []byte("by hand"), Retention: long}); err != nil {
				e.Fatalf("resolve: %v, want success", err)
			}
			first.wantDescription("resolved")
		},
	},
	{
		conformance.Case{
			ID:     "description-ends",
			Rule:   "The description outlives the payload with its record, and a claim of an ID whose record has ended leaves nothing of it.",
			Source: "Store, interface comment; Record.Description",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			expired, ended := e.caller(), e.caller()
			expired.description, ended.description = "of the first", "of the first"
			expired.retention, ended.retention, expired.horizon = e.short(), e.short(), long
			for _, first := range []caller{expired, ended} {
				first.claimNew()
				first.complete("answer")
			}
			e.advance(e.short())
			expired.wantDescription("expired")
			second := ended.rival()
			second.description = ""
			second.claimNew()
			if !e.fixture.Atomic {
				second.wantDescription("claimed anew")
			}
			second.complete("answer")
			second.wantDescription("completed anew")
		},
	},
	{
		conformance.Case{
			ID:     "description-refused",
			Rule:   "A description of more than 255 bytes, or with a byte that is not printable US-ASCII, is ErrInvalid, and nothing is written.",
			Source: "MaxDescription, ClaimRequest.Validate, CompleteRequest.Validate",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			for _, description := range []string{strings.Repeat("x", store.MaxDescription+1), "caf\u00e9", "a\nb", "\x00", "\x7f"} {
				first := e.caller()
				first.description = description
				_, err := first.tryClaim()
				e.wantInvalid("claim with an invalid description", err)
				first.wantNotFound()
				first.description = ""
				granted := first.claimNew()
				first.description = description
				e.wantInvalid("complete with an invalid description", first.tryCompleteAs(granted, "answer"))
				first.release()
			}
		},
	},
	{
		conformance.Case{
			ID:     "record-fingerprint",
			Rule:   "A record shows the fingerprint of its request, from which the keys of downstream calls are derived.",
			Source: "Record.Fingerprint, Record.Key",
			Needs:  []conformance.Need{conformance.Inspector},
		},
		func(e *env) {
			first := e.caller()
			first.horizon = long
			first.claimNew()
			if !e.fixture.Atomic {
				first.wantFingerprint("in progress")
			}
			first.complete("answer")
			first.wantFingerprint("completed")
			if got := first.listed(); got.Fingerprint != first.fingerprint {
				e.Errorf("listed with the fingerprint %x, want %x", got.Fingerprint, first.fingerprint)
			}
			lost := e.caller()
			lost.claimNew()
			lost.unknown("the bank timed out")
			lost.wantFingerprint("unknown")
		},
	},
}

// wantDescription demands the caller's description of its record.
func (c caller) wantDescription(what string) {
	c.env.Helper()
	if got := c.inspect(); got.Description != c.description || got.Label != c.label {
		c.env.Errorf("the record that is %s has the description %q and the label %q, want %q and %q",
			what, got.Description, got.Label, c.description, c.label)
	}
}

// wantFingerprint demands the caller's fingerprint of its record.
func (c caller) wantFingerprint(what string) {
	c.env.Helper()
	if got := c.inspect(); got.Fingerprint != c.fingerprint {
		c.env.Errorf("the record that is %s has the fingerprint %x, want %x", what, got.Fingerprint, c.fingerprint)
	}
}
