package adaptertest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/internal/suite"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// rules is the number of the last rule of the protocol. Those of the engine and of
// core/protocol have unit tests there, and no case.
const rules = 52

func TestCasesHaveUniqueNamesAndPromises(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[RT][0-9]+[a-z]?$`)
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.ID] || !name.MatchString(c.ID) {
			t.Errorf("the ID %q is used twice or misspelt", c.ID)
		}
		seen[c.ID] = true
		if n, _ := strconv.Atoi(strings.Trim(c.ID, "RTabcdefghijklmnopqrstuvwxyz")); n < 1 || n > rules {
			t.Errorf("%s: docs/engineering/protocol.md has no such rule", c.ID)
		}
		if !strings.HasSuffix(c.Rule, ".") || c.Source == "" {
			t.Errorf("%s: the rule is %q, from %q", c.ID, c.Rule, c.Source)
		}
	}
}

func TestFixtureMistakesAreFound(t *testing.T) {
	t.Parallel()
	good := Fixture{
		Open:  func(testing.TB) store.Store { return nil },
		Serve: func(testing.TB, Options) string { return "" }, Advance: conformance.Sleep,
	}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Fixture){
		"no Open":         func(f *Fixture) { f.Open = nil },
		"no Serve":        func(f *Fixture) { f.Serve = nil },
		"no Advance":      func(f *Fixture) { f.Advance = nil },
		"waiver of no ID": func(f *Fixture) { f.Waivers = []conformance.Waiver{{Case: "R99", Reason: "misspelt", Says: "a"}} },
		"waiver of stores": func(f *Fixture) {
			f.Waivers = []conformance.Waiver{{Case: "claim-first", Reason: "another suite", Says: "a"}}
		},
		"waiver unfounded": func(f *Fixture) { f.Waivers = []conformance.Waiver{{Case: "R1a"}} },
	} {
		f := good
		spoil(&f)
		if f.check() == nil {
			t.Errorf("%s: the fixture is accepted", name)
		}
	}
}

// A result says how a case ended: the server that is not there makes each fail that needs
// one.
func TestResultReportsHowACaseEnded(t *testing.T) {
	t.Parallel()
	f := Fixture{
		Open:    func(testing.TB) store.Store { return memstore.New() },
		Serve:   func(testing.TB, Options) string { return "127.0.0.1:1" },
		Advance: func(testing.TB, time.Duration) {}, Patience: time.Second,
		Waivers: []conformance.Waiver{{Case: "R5a", Reason: "there is no server", Says: "connection refused"}},
	}
	for id, want := range map[string]Status{"R1a": Failed, "R5a": Waived, "R34c": NotApplicable} {
		for i := range cases {
			c := &cases[i]
			if c.ID != id {
				continue
			}
			got := suite.Record(t, func(tb testing.TB) { c.judge(tb, f) })
			if r := c.result(got, &f); r.Status != want || (r.Reason != "") != (want == Waived) {
				t.Errorf("%s is %+v, want %s; %s", id, r, want, got.Text())
			}
			if want == Failed && !strings.Contains(got.Text(), c.Rule) {
				t.Errorf("the failure does not tell the rule: %s", got.Text())
			}
		}
	}
}
