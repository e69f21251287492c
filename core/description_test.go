package reprise_test

import (
	"context"
	"strings"
	"testing"
	"unsafe"

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

// TestDescriptionIsThatOfTheClaim: in each claim of an attempt and in its completion,
// also where the record itself was lost.
func TestDescriptionIsThatOfTheClaim(t *testing.T) {
	inTime(t, func(t *testing.T) {
		b, op := setup(t, reprise.Config{}), order("k")
		var seen []string
		var owner store.Owner
		b.store.onClaim = func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			seen, owner = append(seen, r.Description), r.Owner
			return b.store.Store.Claim(ctx, r)
		}
		b.store.onComplete = func(ctx context.Context, r store.CompleteRequest) error {
			seen = append(seen, r.Description)
			return b.store.Store.Complete(ctx, r)
		}
		buffer := []byte("POST /orders")
		op.Description = unsafe.String(&buffer[0], len(buffer)) //nolint:gosec // as frameworks do whose buffers are used again
		a := b.claim(t, op)
		copy(buffer, "GET /others?")
		if err := b.store.Release(t.Context(), a.ID(), owner); err != nil {
			t.Fatal(err)
		}
		complete(t, a, "answer", reprise.EndRecorded)
		if got := strings.Join(seen, ", "); got != "POST /orders, POST /orders, POST /orders, POST /orders" {
			t.Errorf("%s", got)
		}
		if got := b.stored(t, op).Description; got != "POST /orders" {
			t.Errorf("the record has %q", got)
		}
	})
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
