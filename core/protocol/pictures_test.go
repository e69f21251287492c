package protocol

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

// The pictures of docs/engineering/requests.md name functions that exist, every outcome,
// every end, and every code with its status.
func TestPicturesHaveEveryDecision(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/engineering/requests.md")
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]any{
		"Guard.Admit": (*Guard).Admit, "Engine.Begin": (*reprise.Engine).Begin, "Exchange.Finish": (*Exchange).Finish,
		"Attempt.Complete": (*reprise.Attempt).Complete, "Attempt.Release": (*reprise.Attempt).Release, "Attempt.Unknown": (*reprise.Attempt).Unknown,
		"Store.Claim": store.Store.Claim, "Store.Renew": store.Store.Renew, "Store.Complete": store.Store.Complete,
		"Store.Release": store.Store.Release, "Store.Unknown": store.Store.Unknown,
	}
	for _, name := range regexp.MustCompile(`\b[A-Z]\w+\.[A-Z]\w+`).FindAllString(string(page), -1) {
		if functions[name] == nil {
			t.Errorf("a picture has %s, which this test does not know", name)
		}
	}
	answers, codes := map[string]string{}, map[string]bool{} // by the names of nodes; in the answers
	for _, m := range regexp.MustCompile(`([\w-]+)\["((?:\d{3} [\w-]+)?)[^"]*"\]`).FindAllStringSubmatch(string(page), -1) {
		answers[m[1]], codes[m[2]] = m[2], true
	}
	var all []string
	for _, code := range Codes() {
		p := code.Problem()
		all = append(all, fmt.Sprint(p.Status, " ", code))
		if got, ok := answers[p.Outcome.String()]; p.Outcome != 0 && (!ok || got != all[len(all)-1]) {
			t.Errorf("the picture of decisions has %q for the outcome %v, want %q", got, p.Outcome, all[len(all)-1])
		}
	}
	for answer := range codes {
		if answer != "" && !slices.Contains(all, answer) {
			t.Errorf("a picture has the answer %q, which no problem is", answer)
		}
	}
	for _, answer := range all {
		if !codes[answer] {
			t.Errorf("no picture has the answer %q", answer)
		}
	}
	for _, outcome := range reprise.Outcomes() {
		all = append(all, outcome.String())
	}
	for _, end := range reprise.AttemptEnds() {
		all = append(all, end.String())
	}
	for _, name := range all[len(Codes()):] {
		if _, ok := answers[name]; !ok {
			t.Errorf("no picture has %s", name)
		}
	}
}
