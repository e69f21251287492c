package storetest

import (
	"fmt"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

var (
	exactTime = []conformance.Need{conformance.ExactTime}
	purger    = []conformance.Need{conformance.Purger}
)

var retentionCases = []testCase{
	scenario("retention-unseen", nil, "Store, Records; G7 horizon",
		"A lapsed attempt past its validity is unseen: the next claim is granted as new, for any request and without Takeover.",
		a.ends(), x.takeover(false).max(1).claims(first)),
	scenario("retention-unseen-own", nil, "Store, Records",
		"A lapsed attempt past its validity is unseen to its owner too: its claim is granted as a new one.",
		a.ends(), a.claims(first.leaving(1, hour)), b.claims(inProgress)),
	scenario("retention-unseen-release", nil, "Store, Records; Store.Release",
		"Releasing an unseen attempt is not an error and does not affect the attempt after it.",
		a.ends(), a.releases(), b.claims(first), a.releases(), a.claims(inProgress), b.completes("second")),
	scenario("retention-live-lease", nil, "Store, Records; G1 exclusion",
		"A live lease outlives the retention of its claim: nobody else runs, and the attempt completes.",
		a.keep(short).claims(first), passes(short.times(2)), b.claims(inProgress), x.claims(mismatch), a.keep(long).completes("answer"), b.claims(replay("answer"))),
	scenario("retention-renewed-lease", nil, "Store, Records; Store.Renew",
		"A lease that was renewed outlives the retention of its claim as well.",
		within(short, a.lease(short).keep(short).claims(first), a.lease(long).keep(long).renews(store.Renewed)),
		passes(short.times(2)), b.claims(inProgress), a.completes("answer"), b.claims(replay("answer"))),
	scenario("retention-from-completion", nil, "Store.Complete, G7 horizon",
		"A response is replayed for the retention counted from its completion, not from its claim.",
		a.keep(short).claims(first), passes(short), within(short, a.completes("answer"), b.claims(replay("answer")))),
	scenario("retention-ends", nil, "Store.Complete, G7 horizon",
		"When the retention of a response ends, the ID is new, even if its claim had a longer retention.",
		a.claims(first), a.keep(short).completes("answer"), passes(short), x.takeover(false).claims(first), x.completes("second"), y.claims(replay("second"))),
	scenario("retention-at-the-end", exactTime, "Store, interface comment: at = expired",
		"A retention has ended at the instant of its end, and not before.",
		a.claims(first), a.keep(short).completes("answer"), passes(short.justBefore()), b.claims(replay("answer")), passes(instant), c.claims(first)),
	scenario("retention-fence", nil, "Store.Claim",
		"The fence does not fall when an ID is claimed again after its retention, purged or not.",
		a.lapses(1), b.claims(attempt(2)), b.keep(short).completes("answer"), passes(short), c.claims(first),
		c.keep(short).completes("answer"), passes(short.times(3)), mayPurge, a.claims(first)),
	scenario("purge-keeps", purger, "Purger",
		"A purge deletes no record that is seen: no live attempt, even past its retention, no valid lapsed attempt, no response.",
		a.keep(short).claims(first), passes(short.times(2)), a.of(1).lapses(1), a.of(2).claims(first), a.of(2).completes("answer"),
		purges(anyNumber), b.claims(inProgress), b.of(1).takeover(false).claims(lapsed), b.of(2).claims(replay("answer"))),
	scenario("purge-deletes", purger, "Purger",
		"A purge deletes unseen records, up to its limit, and returns how many.",
		a.claims(first), a.completes("kept"),
		repeated(5, func(i int) []step {
			return []step{a.of(i + 1).keep(short).claims(first), a.of(i + 1).completes("answer")}
		}),
		passes(short.times(4)), // a store may purge a little late
		purges(func(deleted int) bool { return deleted > 0 }), purges(func(deleted int) bool { return deleted == 0 }),
		b.claims(replay("kept"))),
	function("purge-limit", purger, "Purger",
		"A limit outside 1 to 100,000 is ErrInvalid.",
		func(s *scene) {
			ctx, cancel := s.call()
			defer cancel()
			for limit, want := range map[int]error{-1: invalid, 0: invalid, 100_001: invalid, 100_000: nil} {
				_, err := ability[store.Purger](s.one).Purge(ctx, limit)
				s.checkError("purge", err)
				s.report(fmt.Sprint("purge of ", limit), err, want)
			}
		}),
}
