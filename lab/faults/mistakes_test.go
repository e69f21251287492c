package faults_test

import (
	"slices"
	"testing"
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
