package reprise_test

import (
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
)

func TestDownstreamKeyIsLayoutVersion1(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, order("k"))
		for name, want := range map[string]string{"": "30b4db5e-3c8c-80f0-bb8c-c1ed7b535545", "payment": "2d23bfad-53d6-8b69-be3c-b5eea33a01f2", strings.Repeat("n", 1000): "b1cee5a8-a075-8968-b1d3-fdfa289d7b97"} {
			got := a.View().Key(name)
			if got != want {
				t.Errorf("%.10q: %s, want %s", name, got, want)
			}
			if len(got) != 36 || got[14] != '8' || !strings.ContainsRune("89ab", rune(got[19])) {
				t.Errorf("%s is no UUID of version 8", got)
			}
		}
		changed := order("k2")
		other := b.claim(t, changed)
		if other.View().Key("payment") == a.View().Key("payment") {
			t.Error("two operations share a downstream key")
		}
		release(t, other)
		changed.Fingerprint[0]++
		third := b.claim(t, changed)
		if third.View().Key("payment") == other.View().Key("payment") {
			t.Error("two requests share a downstream key")
		}
		release(t, third)
		release(t, a)
	})
}
