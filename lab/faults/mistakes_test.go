package faults_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// Servers that make a mistake are detected, by the rule that they break. Without this
// test a checker that finds no violations would prove little.
func TestMistakesOfServersAreFound(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mistake string
		make    func(testing.TB, setting) *world
		lane    func(*decision)
		faults  int
		rules   []string
	}{
		{"unfenced", redisSingle, func(d *decision) {
			stopLong(d, "before-complete")
		}, 2, []string{"G2", "G3"}},
		{"not-stored", redisSingle, func(*decision) {}, 3, []string{"G2", "G3"}},
		{"late-commit", func(tb testing.TB, s setting) *world { s.preset = transactional; return postgres(tb, "postgres-tx", s) }, func(d *decision) {
			n := pick(d.a, d.nodes...)
			if n.arm("after-send", "kill", 2, lease) {
				n.kill()
				n.restart(d)
			}
		}, 3, []string{"G2", "G3", "G4"}},
	}
	for _, tt := range tests {
		t.Run(tt.mistake, func(t *testing.T) {
			t.Parallel()
			// On a busy machine the servers may not get to their mistake in a few faults.
			for try := range uint64(4) {
				w := tt.make(t, setting{name: tt.mistake, mistake: tt.mistake})
				w.soak, w.lanes = 0, []lane{{"mistake", tt.faults, tt.lane}}
				for _, v := range w.run(t, seed(t)+try).violations {
					if slices.Contains(tt.rules, v.rule) {
						t.Log("found: ", v)
						return
					}
				}
			}
			t.Errorf("none of %v was found broken", tt.rules)
		})
	}
}

// stopLong stops a server at a point until another one has its attempt.
func stopLong(d *decision, point string) {
	n := pick(d.a, d.nodes...)
	if !n.arm(point, "stop", 1, lease) {
		return
	}
	sleepFor(2 * lease)
	n.resume()
}

// The points are in this test's build only: neither their names nor the code that arms
// them are in another.
func TestFaultPointsAreInNoOtherBuild(t *testing.T) {
	t.Parallel()
	labtest.Breadth(t, "tests of a further build")
	plain := filepath.Join(t.TempDir(), "testserver")
	labtest.Must(t, build(plain, ""))
	for path, want := range map[string]bool{plain: false, binary(t): true} {
		content, err := os.ReadFile(path)
		labtest.Must(t, err)
		for _, text := range []string{"serve.(*points).pass", "serve.(*pointStore).Claim", "REPRISE_FAULTS_HISTORY", "REPRISE_FAULTS_MISTAKE", "after-claim"} {
			if got := bytes.Contains(content, []byte(text)); got != want {
				t.Errorf("%s has the text %s: %t, want %t", filepath.Base(filepath.Dir(path)), text, got, want)
			}
		}
	}
	// The published modules do not know the tag at all.
	search := exec.CommandContext(t.Context(), "grep", "-rlE", "reprise_faults", "--include=*.go", filepath.Join("..", ".."))
	search.Stderr = t.Output()
	out, err := search.Output()
	if err != nil {
		t.Fatalf("grep, which should find this file: %v", err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(path, filepath.Join("..", "..", "lab")+"/") {
			t.Errorf("%s knows the tag reprise_faults", path)
		}
	}
}
