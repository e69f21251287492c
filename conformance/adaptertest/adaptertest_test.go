package adaptertest

import (
	"regexp"
	"slices"
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
		Serve: func(testing.TB, Options) string { return "" },
	}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Fixture){
		"no Open":         func(f *Fixture) { f.Open = nil },
		"no Serve":        func(f *Fixture) { f.Serve = nil },
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

// The server that is not there makes each case fail that needs one: a failure tells the
// rule, and a case that is waived is skipped.
func TestCasesFailOrAreSkipped(t *testing.T) {
	t.Parallel()
	f := Fixture{
		Open:     func(testing.TB) store.Store { return memstore.New() },
		Serve:    func(testing.TB, Options) string { return "127.0.0.1:1" },
		Patience: time.Second,
		Waivers:  []conformance.Waiver{{Case: "R5a", Reason: "there is no server", Says: "connection refused"}},
	}
	for id, fails := range map[string]bool{"R1a": true, "R5a": false} {
		c := &cases[slices.IndexFunc(cases, func(c testCase) bool { return c.ID == id })]
		got := suite.Record(t, func(tb testing.TB) { c.judge(tb, f) })
		if got.Failed() != fails || got.Skipped() == fails || fails && !strings.Contains(got.Text(), c.Rule) {
			t.Errorf("%s: failed %t, skipped %t: %s", id, got.Failed(), got.Skipped(), got.Text())
		}
	}
}
