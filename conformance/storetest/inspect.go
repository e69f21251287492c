package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// The states that the cases name most.
const (
	completed  = store.StateCompleted
	unknown    = store.StateUnknown
	unreadable = store.StateUnreadable
)

var inspectCases = []testCase{
	scenario("inspect-nothing", inspector, "Inspector.Inspect",
		"Inspecting an ID that was never claimed, or whose retention ended, is ErrNotFound.",
		a.isAbsent(), a.claims(first), a.keep(short).completes("answer"), passes(short), a.isAbsent()),
	scenario("inspect-completed", inspector, "Inspector.Inspect, Record",
		"Inspecting a completed record shows its payload, its fence, and how long it is replayed.",
		a.claims(first), a.keep(span{plus: hour / 2}).completes("answer"), a.shows(completed, validFor(hour/4, hour/2))),
	scenario("inspect-in-progress", inspector, "Inspector.Inspect, Record",
		"Inspecting an attempt shows what remains of its lease and of its validity, negative once it lapsed, and no payload.",
		a.lease(span{plus: hour / 2}).claims(first), a.shows(store.StateRunning, leaseOf(hour/4, hour/2), validFor(3*hour/4, hour)),
		a.of(1).lapses(1), a.of(1).shows(store.StateLapsed, leaseOf(-hour, 0))),
	scenario("inspect-live-beyond-retention", inspector, "Record.Validity; Store, Records",
		"A live attempt that outlived its retention is seen until its lease ends, and its validity says so.",
		a.keep(short).claims(first), passes(short.times(2)), a.shows(store.StateRunning, leaseOf(hour/2, hour), validFor(hour/2, hour))),
}

// recordCases are about what a record shows of its claim. Every other case that shows a
// record compares all of it as well.
var recordCases = []testCase{
	scenario("record-policy", inspector, "Policy, Record",
		"A record shows the policy of its claim, also an empty label and one of 32 bytes, until it ends.",
		each([]string{"", "payments", `a "b"; \ ~`, strings.Repeat("x", store.MaxLabel)}, func(label string) []step {
			return []step{
				a.label(label).strict(label != "").horizon(long.times(len(label))).claims(first),
				a.shows(store.StateRunning), a.isListed(store.StateRunning), a.renews(store.Renewed), a.shows(store.StateRunning),
				a.completes("answer"), a.shows(completed), a.isListed(completed),
			}
		})),
	scenario("record-policy-takeover", inspector, "Policy, Record",
		"A record that lapsed, was taken over or was resolved shows the policy of its last claim.",
		a.label("payments").lapses(1), a.shows(store.StateLapsed), a.isListed(store.StateLapsed),
		b.label("refunds").strict(false).horizon(long).lease(short).claims(attempt(2)), passes(short), // by a deployment
		b.shows(store.StateLapsed), b.isResolved(byHand(long)), b.shows(completed), b.isListed(completed)),
	scenario("record-label-refused", inspector, "MaxLabel, Policy.Validate, Query.Validate",
		"A label of more than 32 bytes, or with a byte that is not printable US-ASCII, is ErrInvalid, and nothing is written.",
		each(append([]string{strings.Repeat("x", store.MaxLabel+1)}, unprintable...), func(label string) []step {
			return []step{
				a.label(label).claimsInvalid(), a.isAbsent(), listIsInvalid(store.Query{Limit: 1, Label: label}),
				a.label("").claims(first), a.label(label).completes("answer", invalid), a.releases(),
			}
		})),
	scenario("record-times", inspector, "Record.ClaimedAt, Record.CompletedAt",
		"A record shows by the store's clock when it was completed and when its last attempt claimed it, which a renewal does not move.",
		a.claims(first), a.shows(store.StateRunning), passes(short), a.renews(store.Renewed), a.shows(store.StateRunning),
		a.completes("answer"), a.shows(completed, tookShort), passes(short), a.completes("again"), a.shows(completed)),
	scenario("record-times-takeover", inspector, "Record.ClaimedAt",
		"A takeover moves the instant at which a record was claimed.",
		a.lapses(1), a.shows(store.StateLapsed), b.claims(attempt(2)), b.shows(store.StateRunning, claimedAfter(a))),
	scenario("record-size", inspector, "Record.Size",
		"A completed record shows the size of its payload, when it is inspected and when it is listed.",
		each([]int{0, 1, 70_000}, func(size int) []step {
			return []step{a.claims(first), a.completes(strings.Repeat("x", size)), a.shows(completed), a.isListed(completed)}
		})),
	scenario("record-resolved", inspector, "Record.Resolved, Inspector.Resolve",
		"A record that an operator completed says so, and when; one that its owner completed does not.",
		a.claims(first), a.completes("answer"), a.shows(completed),
		b.of(1).lapses(1), b.of(1).shows(store.StateLapsed), b.of(1).isResolved(byHand(long)), b.of(1).shows(completed), b.of(1).isListed(completed)),
	scenario("record-fingerprint", inspector, "Record.Fingerprint, Record.Key",
		"A record shows the fingerprint of its request, from which the keys of downstream calls are derived.",
		a.horizon(long).claims(first), a.shows(store.StateRunning), a.completes("answer"), a.shows(completed), a.isListed(completed),
		b.of(1).claims(first), b.of(1).saysUnknown(bankTimedOut), b.of(1).shows(unknown)),
}

// claimsInvalid claims what is refused.
func (p actor) claimsInvalid() step {
	return p.call("claims what is invalid", func(_ *scene, c *caller) error {
		got, err := c.tryClaim()
		return wantError(fmt.Sprint("claim answered ", got.Outcome), err, invalid)
	})
}

func listIsInvalid(q store.Query) step {
	return step{"a listing is refused", func(s *scene) error {
		page, err := s.page(s.one, q)
		return wantError(fmt.Sprintf("list %.20q: %+v", q.After, page), err, invalid)
	}}
}

// tookShort is the sight of a record that was completed a short time after its claim.
func tookShort(c *caller, r *store.Record) error {
	return between("the time from claim to completion", r.CompletedAt.Sub(r.ClaimedAt), c.grain*9/10, hour)
}

// claimedAfter is the sight of a record that was claimed a short time after an earlier
// attempt.
func claimedAfter(before actor) sight {
	return func(c *caller, r *store.Record) error {
		return between("the time since the last attempt's claim", r.ClaimedAt.Sub(c.scene.caller(before).shownAt), c.grain*9/10, time.Duration(1<<62))
	}
}

// descriptionCases are about what tells operators which request a record is of.
var descriptionCases = []testCase{
	scenario("description", inspector, "ClaimRequest.Description, Record.Description",
		"A record shows the description of its claim, also none and one of 255 bytes, in progress and completed.",
		each([]string{"", "d", `POST /orders "b"; \ ~`, strings.Repeat("x", store.MaxDescription)}, func(description string) []step {
			a, known := a.label(strings.Repeat("l", store.MaxLabel)).horizon(long), a.of(1).strict(true)
			return []step{
				known.describe(description).claims(first), known.completes("answer"), known.shows(completed), known.isListed(completed),
				a.describe(description).claims(first),
				a.shows(store.StateRunning), a.renews(store.Renewed), a.shows(store.StateRunning),
				b.waiting().describe("of the rival").claims(inProgress), // which makes some stores write the record
				a.forgetful().completes("answer"), a.shows(completed), a.isListed(completed), c.claims(replay("answer")),
			}
		})),
	scenario("description-takeover", inspector, "Store.Claim; Record.Description",
		"A takeover writes the description of its claim, or none, which stays when the record is completed or resolved.",
		each([]string{"of the second", ""}, func(description string) []step {
			a, b := a.of(1), b.of(1)
			return []step{
				a.describe("of the first").lapses(1), a.shows(store.StateLapsed),
				b.describe(description).lease(short).claims(attempt(2)), passes(short), b.shows(store.StateLapsed),
				b.isResolved(byHand(long)), b.shows(completed),
			}
		}),
		each([]string{"of the second", ""}, func(description string) []step {
			return []step{
				a.describe("of the first").lapses(1), b.describe(description).claims(attempt(2)), b.shows(store.StateRunning),
				b.completes("answer"), b.shows(completed),
			}
		})),
	scenario("description-unknown", inspector, "Store.Unknown; Record.Description",
		"A record whose outcome is unknown shows the description of its claim beside the reason, also after an operator resolved it.",
		a.describe("POST /orders").horizon(long).claims(first), a.saysUnknown(bankTimedOut), a.shows(unknown),
		a.isResolved(byHand(long)), a.shows(completed)),
	scenario("description-ends", inspector, "Store, interface comment; Record.Description",
		"The description outlives the payload with its record, and a claim of an ID whose record has ended leaves nothing of it.",
		a.of(1).describe("of the first").keep(short).horizon(long).claims(first), a.of(1).completes("answer"),
		a.describe("of the first").keep(short).claims(first), a.completes("answer"), passes(short),
		a.of(1).shows(store.StateExpired), b.claims(first), b.shows(store.StateRunning), b.completes("answer"), b.shows(completed)),
	scenario("description-refused", inspector, "MaxDescription, ClaimRequest.Validate, CompleteRequest.Validate",
		"A description of more than 255 bytes, or with a byte that is not printable US-ASCII, is ErrInvalid, and nothing is written.",
		each(append([]string{strings.Repeat("x", store.MaxDescription+1)}, unprintable...), func(description string) []step {
			return []step{
				a.describe(description).claimsInvalid(), a.isAbsent(),
				a.describe("").claims(first), a.describe(description).completes("answer", invalid), a.releases(),
			}
		})),
}
