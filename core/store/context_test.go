package store_test

import (
	"context"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

func TestRunContextIsThatOfTheAdapter(t *testing.T) {
	t.Parallel()
	type name struct{}
	run := context.WithValue(t.Context(), name{}, "bound")
	framework := context.WithValue(t.Context(), store.ContextKey, run) //nolint:staticcheck // as frameworks find values by strings
	found, ok := store.RunContext(framework)
	if !ok || found.Value(name{}) != "bound" {
		t.Errorf("found %v, %t", found, ok)
	}
	for label, ctx := range map[string]context.Context{
		"none":            t.Context(),
		"another value":   context.WithValue(t.Context(), store.ContextKey, "text"), //nolint:staticcheck // likewise
		"the run's inner": run,
	} {
		if found, ok := store.RunContext(ctx); ok {
			t.Errorf("%s: found %v", label, found)
		}
	}
}
