package storetest

import (
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// listCases are about how operators find records.
var listCases = []testCase{
	scenario("list", inspector, "Inspector.List",
		"A listing shows the records that are seen, without payloads, up to its limit.",
		a.keep(short).claims(first), a.completes("gone"), passes(short),
		a.of(1).claims(first), a.of(1).completes("answer"), a.of(2).claims(first), a.of(2).completes("answer"),
		a.of(1).isListed(completed), lists(store.Query{Limit: store.MaxPage}, a.of(1), a.of(2)), lists(store.Query{Limit: 1}, a.of(1), a.of(2)),
		listIsInvalid(store.Query{Limit: -1}), listIsInvalid(store.Query{}), listIsInvalid(store.Query{Limit: store.MaxPage + 1})),
	scenario("list-states", inspector, "Query.States",
		"A listing of some states shows all records in these states and no others, each in its state.",
		a.lapses(1), b.of(1).claims(first), c.of(2).claims(first), c.of(2).completes("answer"),
		lists(store.Query{}, a, b.of(1), c.of(2)),
		lists(store.Query{States: store.States(store.StateLapsed)}, a), a.isListed(store.StateLapsed),
		lists(store.Query{States: store.States(store.StateRunning)}, b.of(1)), b.of(1).isListed(store.StateRunning),
		lists(store.Query{States: store.States(completed)}, c.of(2)), c.of(2).isListed(completed),
		lists(store.Query{States: store.States(unreadable)}),
		lists(store.Query{States: store.States(store.StateLapsed, store.StateRunning)}, a, b.of(1)),
		lists(store.Query{States: store.States(completed, store.StateLapsed)}, a, c.of(2))),
	scenario("list-label", inspector, "Query.Label, ProbeLabel",
		"A listing of a label shows all records with this label and no others, and a listing of none all but those of probes.",
		a.claims(first), a.completes("answer"),
		a.of(1).label("pay").claims(first), a.of(1).completes("answer"), a.of(2).label("pay").claims(first), a.of(2).completes("answer"),
		a.of(3).label("payments").claims(first), a.of(3).completes("answer"), a.of(4).label("PAY").claims(first), a.of(4).completes("answer"),
		a.of(5).label(store.ProbeLabel).claims(first), a.of(5).completes("answer"),
		lists(store.Query{Label: store.ProbeLabel}, a.of(5)), lists(store.Query{Label: "pay"}, a.of(1), a.of(2)), lists(store.Query{Label: "payments"}, a.of(3)), lists(store.Query{Label: "PAY"}, a.of(4)),
		lists(store.Query{Label: "pa"}), lists(store.Query{Label: "payment"}), lists(store.Query{}, a, a.of(1), a.of(2), a.of(3), a.of(4))),
	scenario("list-age", inspector, "Query.OlderThan",
		"A listing by age shows the records whose last attempt claimed them at least that long ago, and no younger ones.",
		a.claims(first), passes(short.times(2)),
		within(short, b.of(1).claims(first), listsOlder(short, store.Query{}, a))),
	function("list-digits", inspector, "Query.Digits",
		"A listing by digits shows the records whose IDs begin with them, and no others.",
		func(s *scene) {
			brace := a.of(3).id('}', 1)
			for _, p := range []actor{a.of(0).id('a', 1), a.of(1).id('b', 1), a.of(2).id('c', 1), brace} {
				s.must(p.claims(first), p.completes("answer"))
				id := s.caller(p).ID.String()
				s.must(lists(store.Query{Digits: id[:8]}, p), lists(store.Query{Digits: id[:9]}, p), lists(store.Query{Digits: id}, p))
			}
			s.must(lists(store.Query{Digits: "7d"}, brace), listIsInvalid(store.Query{Digits: "x", Limit: 1}))
		}),
	function("list-pages", inspector, "Inspector.List, Page.Next",
		"The pages of a listing have at most as many records as asked for, and together every record that is there all the time, while others come and go.",
		testPages),
	scenario("list-finds", inspector, "Inspector.List, Query.States",
		"A listing selects before it counts: some lapsed records among many that are completed are found, in pages of one record.",
		repeated(40, func(i int) []step { return []step{a.of(i + 4).claims(first), a.of(i + 4).completes("answer")} }),
		// Several, for one may happen to be the first that a listing looks at.
		repeated(4, func(i int) []step { return []step{a.of(i).lease(short).claims(first)} }), passes(short),
		lists(store.Query{States: store.States(store.StateLapsed), Limit: 1}, a, a.of(1), a.of(2), a.of(3))),
	scenario("list-cursor", inspector, "Inspector.List, Query.After",
		"A cursor that this store did not return is ErrInvalid.",
		repeated(3, func(i int) []step { return []step{a.of(i).claims(first), a.of(i).completes("answer")} }),
		each([]string{
			"x", "0", "1234", "\x00", "memory-0-0-", "redis-0-0", "postgres-0", strings.Repeat("a", 64), strings.Repeat("0", 4096), "' OR 1=1 --",
		}, func(cursor string) []step { return []step{listIsInvalid(store.Query{After: cursor, Limit: 1})} })),
	scenario("count", []conformance.Need{conformance.Counter}, "Counter.Count",
		"A count has the number of completed and of expired records of each label, but for those of probes, and shows each other record as an inspection does.",
		a.keep(short).claims(first), a.completes("gone"),
		a.of(1).keep(short).horizon(long).label("counted").claims(first), a.of(1).completes("answer"), b.of(2).lapses(1), passes(short),
		a.of(3).label("counted").claims(first), a.of(3).completes("answer"), a.of(4).label("counted").lapses(1), a.of(4).completes("answer"),
		a.of(5).label("counted").horizon(long).describe("POST /orders").claims(first), a.of(5).completes("answer"),
		a.of(6).label("counted").lapses(1), a.of(6).shows(store.StateLapsed), a.of(6).isResolved(byHand(long)),
		a.of(7).claims(first), c.of(8).claims(first), c.of(8).saysUnknown("the bank timed out"),
		a.of(9).label(store.ProbeLabel).claims(first), a.of(9).completes("answer"), a.of(10).label(store.ProbeLabel).claims(first),
		counts("counted", 4, 1, b.of(2), a.of(7), c.of(8)), counts(store.ProbeLabel, 0, 0, b.of(2), a.of(7), c.of(8))),
	function("usage", []conformance.Need{conformance.Meter}, "Meter, Usage",
		"A store names each of its resources once, in lower case, with at most as much in use as it allows, while attempts come and go.",
		func(s *scene) {
			s.checkUsage()
			s.must(a.claims(first))
			s.checkUsage()
			s.must(a.completes("answer"))
			s.checkUsage()
		}),
}

// testPages lists records in pages, while others come and go.
func testPages(s *scene) {
	var stay []actor
	for i := range 30 {
		stay = append(stay, a.of(i).label("stay"))
		s.must(stay[i].claims(first), stay[i].completes("answer"))
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
			c := newScene(s.env).caller(a)
			if _, err := c.tryClaim(); err != nil {
				return
			}
			if n%2 == 0 {
				_ = c.tryComplete("answer")
			} else {
				_ = c.tryRelease()
			}
			conformance.Sleep(s, time.Millisecond)
		}
	})
	defer others.Wait()
	defer close(stop)
	for _, limit := range []int{1, 7, 30, 1000} {
		s.must(lists(store.Query{Label: "stay", Limit: limit}, stay...))
	}
}

func (s *scene) checkUsage() {
	s.Helper()
	names := map[string]bool{}
	for _, u := range ability[store.Meter](s.one).Usage() {
		if names[u.Name] || u.Name == "" || u.Name != strings.ToLower(u.Name) || len(u.Name) > 20 {
			s.Errorf("the name of a resource is used twice or misspelt: %+v", u)
		}
		if names[u.Name] = true; u.Used < 0 || u.Waiting < 0 || u.Limit < 0 || u.Limit > 0 && u.Used > u.Limit {
			s.Errorf("more in use than there is: %+v", u)
		}
	}
	if len(names) == 0 {
		s.Error("a store that is a Meter names no resource")
	}
}
