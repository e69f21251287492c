package reprise_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

func TestDownstreamKeyIsLayoutVersion1(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b := setup(t, reprise.Config{})
		a := b.claim(t, order("k"))
		for name, want := range map[string]string{"": "30b4db5e-3c8c-80f0-bb8c-c1ed7b535545", "payment": "2d23bfad-53d6-8b69-be3c-b5eea33a01f2", strings.Repeat("n", 1000): "b1cee5a8-a075-8968-b1d3-fdfa289d7b97"} {
			got := keyOf(t, a, name)
			if got != want {
				t.Errorf("%.10q: %s, want %s", name, got, want)
			}
			if len(got) != 36 || got[14] != '8' || !strings.ContainsRune("89ab", rune(got[19])) {
				t.Errorf("%s is no UUID of version 8", got)
			}
		}
		changed := order("k2")
		other := b.claim(t, changed)
		if keyOf(t, other, "payment") == keyOf(t, a, "payment") {
			t.Error("two operations share a downstream key")
		}
		release(t, other)
		changed.Fingerprint[0]++
		third := b.claim(t, changed)
		if keyOf(t, third, "payment") == keyOf(t, other, "payment") {
			t.Error("two requests share a downstream key")
		}
		release(t, third)
		release(t, a)
	})
}

// keyOf returns the key of an attempt for a downstream call.
func keyOf(t *testing.T, a *reprise.Attempt, name string) string {
	t.Helper()
	key := must(a.View().Key(name))
	return key
}

// A handler that ignores whether there is an attempt, as on a route whose key is
// optional, gets defined values of none.
func TestViewOfNoAttempt(t *testing.T) {
	t.Parallel()
	for name, ctx := range map[string]context.Context{
		"no run":             t.Context(),
		"another's value":    context.WithValue(t.Context(), store.ContextKey, "x"), //nolint:staticcheck // as frameworks find values by strings
		"another's number":   frameworkContext{t.Context(), map[string]any{store.ContextKey: 42}},
		"another's list":     frameworkContext{t.Context(), map[string]any{store.ContextKey: []int{42}}},
		"another's context":  frameworkContext{t.Context(), map[string]any{store.ContextKey: t.Context()}},
		"a nil of a context": frameworkContext{t.Context(), map[string]any{store.ContextKey: context.Context(nil)}},
	} {
		view, ok := reprise.AttemptFrom(ctx)
		if key, err := view.Key("charge"); ok || key != "" || !errors.Is(err, reprise.ErrNoAttempt) {
			t.Errorf("%s: found is %t, key %q, error %v", name, ok, key, err)
		}
		if view.Number() != 0 || view.Fence() != 0 || view.ID() != (store.ID{}) || view.Policy() != (store.Policy{}) {
			t.Errorf("%s: number %d, fence %d, ID %v, policy %+v", name, view.Number(), view.Fence(), view.ID(), view.Policy())
		}
	}
}
