package main

import (
	"slices"
	"testing"
)

func TestOrdersAreTakenOnce(t *testing.T) {
	t.Parallel()
	answers, taken, err := run(t.Context(), 2)
	want := []string{"cart-0: order 1 (replayed: true)", "cart-1: order 2 (replayed: true)"}
	if err != nil || taken != 2 || !slices.Equal(answers, want) {
		t.Errorf("%d orders were taken, the client got %q, %v", taken, answers, err)
	}
}
