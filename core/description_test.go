package reprise_test

import (
	"context"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
)

func TestDescriptionIsPrintableAndBounded(t *testing.T) {
	for given, want := range map[string]string{
		"":                     "",
		"POST /orders of acme": "POST /orders of acme",
		"caf\u00e9\n\x7f\xff":  "caf????",
		strings.Repeat("x", store.MaxDescription):   strings.Repeat("x", store.MaxDescription),
		strings.Repeat("x", store.MaxDescription+1): strings.Repeat("x", store.MaxDescription-3) + "...",
	} {
		inTimeNamed(t, want, func(t *testing.T) {
			b, op := setup(t, reprise.Config{}), order("k")
			op.Description = given
			a := b.claim(t, op)
			if got := b.stored(t, op).Description; got != want {
				t.Errorf("%q", got)
			}
			release(t, a)
		})
	}
}

func TestDoDescribesItsOperation(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b, op := setup(t, reprise.Config{}), order("k")
		op.Description = "invoice 17 of acme"
		_, err := reprise.Do(t.Context(), b.Engine, op, nil, func(context.Context) (int, error) { return 1, nil })
		if got := b.stored(t, op); err != nil || got.Description != "invoice 17 of acme" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
