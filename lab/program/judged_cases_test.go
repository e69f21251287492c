package program

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// profiles are the sets of rules of reprise judge.
var profiles = []string{"draft-07", "reprise", "stripe", "acp"}

// casesOf returns the cases of a profile.
func casesOf(t *testing.T, profile string) (list []judgedCase) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t), "judge", "--list", "--json", "--profile", profile).Output()
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A case that no test has seen fail may be one that cannot.
func TestEveryCaseOfTheJudgeFailsForADefect(t *testing.T) {
	t.Parallel()
	var broken []string
	for _, d := range defects {
		broken = append(broken, strings.Fields(d.breaks)...)
	}
	for _, c := range profilePolicies {
		broken = append(broken, strings.Fields(c.unlike)...)
	}
	for _, c := range crashingServices {
		broken = append(broken, strings.Fields(c.breaks)...)
	}
	for _, breaks := range ownBreaks {
		broken = append(broken, strings.Fields(breaks)...)
	}
	broken = append(broken, severalAddresses...)
	var all []string
	for _, profile := range profiles {
		for _, c := range casesOf(t, profile) {
			all = append(all, c.ID)
		}
	}
	slices.Sort(all)
	for _, id := range slices.Compact(all) {
		if !slices.Contains(broken, id) {
			t.Errorf("%s: no defect breaks it", id)
		}
	}
	for _, id := range broken {
		if !slices.Contains(all, id) {
			t.Errorf("%s: there is no such case", id)
		}
	}
}

// A profile of a foreign document demands its rules only.
func TestMustsOfTheJudgeNameTheDocumentOfTheirProfile(t *testing.T) {
	t.Parallel()
	for profile, document := range map[string]string{"draft-07": "draft ", "stripe": "Stripe, ", "acp": "ACP "} {
		for _, c := range casesOf(t, profile) {
			if c.Level == "must" && !strings.Contains(c.Source, document) {
				t.Errorf("%s: %s is a must by %s", profile, c.ID, c.Source)
			}
		}
	}
}
