package storetest

import "github.com/reprise-go/reprise/core/store"

// policyCases are about the policy that a record keeps: retries are judged by it, and not
// by their own.
var policyCases = []testCase{
	scenario("policy-lapsed", nil, "Store.Claim; Policy.AtMostOnce",
		"A lapsed attempt that was claimed with AtMostOnce is never taken over, and one that was not is, whatever policy a retry has.",
		a.strict(true).lapses(1), b.claims(lapsed), c.strict(true).claims(lapsed), a.claims(again), a.completes("answer"),
		a.of(1).lapses(1), b.of(1).strict(true).claims(attempt(2))),
	scenario("policy-takeover", nil, "Store.Claim; Policy",
		"A takeover writes the policy of its claim: when it lapses as well, that policy decides.",
		a.lapses(1), b.strict(true).lapses(2), c.claims(lapsed)),
	scenario("horizon", nil, "Store.Claim; Policy.Horizon; G7 horizon",
		"When the retention of a completed record has ended, every claim answers Expired until its horizon has ended too, and Mismatch to another request.",
		a.keep(short).horizon(long).claims(first), a.completes("answer"), passes(short), b.claims(expired),
		b.waiting().claims(expired), // which some stores answer in another way
		a.claims(expired), x.claims(mismatch)),
	scenario("horizon-ends", nil, "Store.Complete; Policy.Horizon; G7 horizon",
		"When the horizon has ended, the ID is new for every request.",
		a.claims(first), a.keep(short).horizon(short).completes("answer"), passes(short.times(2)), x.claims(first)),
	scenario("horizon-at-the-end", exactTime, "Store.Complete; Store, interface comment: at = expired",
		"A payload is replayed until the instant at which its retention ends, and its record is seen until the instant at which the horizon ends.",
		a.claims(first), passes(short), a.keep(short).horizon(short.times(2)).completes("answer"),
		passes(short.justBefore()), b.claims(replay("answer")), passes(instant), b.claims(expired),
		passes(short.times(2).justBefore()), b.claims(expired), passes(instant), b.claims(first)),
	scenario("horizon-of-record", nil, "Policy",
		"The retention and horizon of a record decide, whatever those of a retry are.",
		a.claims(first), a.completes("answer"), a.of(1).keep(short).horizon(long).claims(first), a.of(1).completes("answer"), passes(short),
		b.keep(short).horizon(long).claims(replay("answer")), b.of(1).claims(expired)),
	scenario("horizon-of-attempt", nil, "Store.Claim; Policy.Horizon",
		"An attempt that never completes is seen for its retention and its horizon, counted from its claim.",
		a.keep(short).horizon(long).lapses(1), b.takeover(false).claims(lapsed), a.completes("answer")),
	scenario("horizon-inspected", inspector, "StateExpired, Record",
		"A record whose payload has ended is shown as expired, without payload or size, and for as long as it is seen.",
		a.label("horizon-inspected").keep(short).horizon(long).claims(first), a.completes("answer"), passes(short),
		a.shows(store.StateExpired, validFor(hour/2, hour)),
		lists(store.Query{Label: "horizon-inspected", States: store.States(store.StateExpired)}, a),
		lists(store.Query{Label: "horizon-inspected", States: store.States(completed)}),
		lists(store.Query{Label: "horizon-inspected", Limit: 1}, a),
		a.isResolved(forget(0), changed)),
	scenario("horizon-purge", purger, "Purger",
		"Purging deletes a payload whose retention has ended, and not the record, whose horizon has not.",
		a.keep(short).horizon(long).claims(first), a.completes("answer"), passes(short), purges(anyNumber), b.claims(expired), x.claims(mismatch)),
}
