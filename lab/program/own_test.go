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
			args := []string{base + "/t/op", "--slow", "400ms", "--profile", "draft-07", "--scope", "X-Test-Tenant: one", "--scope", "X-Test-Tenant: two"}
			if testing.Short() {
				args = append(args, "--only", groups(strings.Fields(want)))
			}
			j := judge(t, args...)
			for _, level := range []string{"must", "should", "may"} {
				t.Logf("%s: %+v", level, j.Summary[level])
			}
			var broken []string
			for _, c := range j.Cases {
				if c.State == "not met" && (c.Level == "must" || strings.HasPrefix(c.ID, "framing/")) {
					broken = append(broken, c.ID)
				}
			}
			if !slices.Equal(broken, strings.Fields(want)) {
				t.Errorf("not met: %q, want %q", broken, want)
			}
		})
	}
}

// ownBreaks are the musts of the draft and the cases of framing that the releases break.
var ownBreaks = map[string]string{
	"fiber":  "key/quoted binding/refused framing/lengths framing/coding framing/both framing/names",
	"fiber3": "key/quoted binding/refused framing/both framing/names",
}
