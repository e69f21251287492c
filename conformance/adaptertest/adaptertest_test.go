package adaptertest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

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
	open, serve := func(testing.TB) store.Store { return nil }, func(testing.TB, Options) string { return "" }
	for name, f := range map[string]Fixture{"no Open": {Serve: serve}, "no Serve": {Open: open}} {
		if f.check() == nil {
			t.Errorf("%s: the fixture is accepted", name)
		}
	}
}
