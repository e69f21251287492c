package program

import (
	"slices"
	"strings"
	"testing"
)

// Fiber's own middleware has no scopes and no fingerprints, and takes a UUID without
// quotes as the key. The releases are those in the go.mod of the two modules; -v prints
// the scores.
func TestJudgeScoresFibersOwnMiddleware(t *testing.T) {
	t.Parallel()
	for name, want := range ownBreaks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := start(t, framed(t, name, ownProgram))
			for _, profile := range []string{"draft-07", "reprise"} {
				j := judge(t, base+"/t/op", "--slow", "200ms", "--profile", profile, "--scope", "X-Test-Tenant: one", "--scope", "X-Test-Tenant: two")
				for _, level := range []string{"must", "should", "may"} {
					t.Logf("%s, %s: %+v", profile, level, j.Summary[level])
				}
				var musts []string
				for _, c := range j.Cases {
					if c.State == "not met" && (c.Level == "must" || strings.HasPrefix(c.ID, "framing/")) {
						musts = append(musts, c.ID)
					}
				}
				t.Logf("musts not met: %q", musts)
				if profile == "draft-07" && !slices.Equal(musts, strings.Fields(want)) {
					t.Errorf("musts not met: %q, want %q", musts, want)
				}
			}
		})
	}
}

// ownBreaks are the musts of the draft that the releases break, and their cases of framing.
var ownBreaks = map[string]string{
	"fiber":  "key/quoted binding/refused framing/lengths framing/coding framing/both framing/names",
	"fiber3": "key/quoted binding/refused framing/both framing/names",
}
