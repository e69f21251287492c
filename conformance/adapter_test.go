package conformance

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

func TestEveryRuleOfTheProtocolHasACase(t *testing.T) {
	t.Parallel()
	const rules = 47
	rule := regexp.MustCompile(`^R(\d+)[a-z]?$`)
	cases := map[int]int{}
	for _, c := range AdapterCases() {
		if m := rule.FindStringSubmatch(c.ID); m != nil {
			n, _ := strconv.Atoi(m[1])
			cases[n]++
		}
	}
	for n := 1; n <= rules; n++ {
		if cases[n] == 0 {
			t.Errorf("no case shows R%d", n)
		}
		delete(cases, n)
	}
	if len(cases) > 0 {
		t.Errorf("cases of rules that there are not: %v", cases)
	}
}

func TestAdapterFixtureMistakesAreFound(t *testing.T) {
	t.Parallel()
	good := AdapterFixture{
		Open:  func(testing.TB) reprise.Store { return nil },
		Serve: func(testing.TB, AdapterOptions) string { return "" }, Advance: Sleep,
	}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*AdapterFixture){
		"no Open":          func(f *AdapterFixture) { f.Open = nil },
		"no Serve":         func(f *AdapterFixture) { f.Serve = nil },
		"no Advance":       func(f *AdapterFixture) { f.Advance = nil },
		"waiver of no ID":  func(f *AdapterFixture) { f.Waivers = []Waiver{{Case: "R99", Reason: "misspelt"}} },
		"waiver of stores": func(f *AdapterFixture) { f.Waivers = []Waiver{{Case: "claim-first", Reason: "another suite"}} },
		"waiver unfounded": func(f *AdapterFixture) { f.Waivers = []Waiver{{Case: "R1a"}} },
	} {
		f := good
		spoil(&f)
		if f.check() == nil {
			t.Errorf("%s: the fixture is accepted", name)
		}
	}
}

// A result says how a case ended: the server that is not there makes each fail that needs one.
func TestResultSaysHowACaseEnded(t *testing.T) {
	t.Parallel()
	f := AdapterFixture{
		Open:    func(testing.TB) reprise.Store { return bare{} },
		Serve:   func(testing.TB, AdapterOptions) string { return "127.0.0.1:1" },
		Advance: func(testing.TB, time.Duration) {}, Patience: time.Second,
		Waivers: []Waiver{{Case: "R1b", Reason: "there is no server"}},
	}
	for id, want := range map[string]Status{"R1a": Failed, "R1b": Waived, "R34c": NotApplicable} {
		for i := range adapterCases {
			c := &adapterCases[i]
			if c.ID != id {
				continue
			}
			got := record(t, func(tb testing.TB) { c.judge(tb, f) })
			if r := c.result(got, &f); r.Status != want || (r.Reason != "") != (want == Waived) {
				t.Errorf("%s is %+v, want %s; %s", id, r, want, got.text())
			}
			if want == Failed && !strings.Contains(got.text(), c.Rule) {
				t.Errorf("the failure does not tell the rule: %s", got.text())
			}
		}
	}
}
