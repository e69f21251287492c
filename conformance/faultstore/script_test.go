package faultstore_test

import (
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/conformance/faultstore"
)

func TestQueueComesBeforeAlways(t *testing.T) {
	t.Parallel()
	inner := &counter{}
	st, faults := faultstore.New(inner)
	other := errors.New("always")
	faults.Always(faultstore.Release, faultstore.FailBefore(other))
	faults.Next(faultstore.Release, faultstore.FailBefore(errScripted), faultstore.Pass())
	release := func() error { return st.Release(t.Context(), store.ID{}, store.Owner{}) }

	for i, want := range []error{errScripted, nil, other, other} {
		if err := release(); !errors.Is(err, want) || faults.Count(faultstore.Release) != i+1 {
			t.Errorf("call %d of %d: error %v, want %v", i+1, faults.Count(faultstore.Release), err, want)
		}
	}
	if _, err := st.Claim(t.Context(), store.ClaimRequest{}); err != nil {
		t.Errorf("another operation: %v, want nil", err)
	}
	faults.Clear(faultstore.Claim)
	if err := release(); !errors.Is(err, other) {
		t.Errorf("after another operation was cleared: %v, want %v", err, other)
	}
	faults.Clear()
	if err := release(); err != nil {
		t.Errorf("after Clear: %v, want nil", err)
	}
}
