package faultstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

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
		if err := release(); !errors.Is(err, want) {
			t.Errorf("call %d: error %v, want %v", i, err, want)
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

func TestCallsAreLoggedInOrderWithTheirArguments(t *testing.T) {
	t.Parallel()
	st, faults := faultstore.New(&counter{})
	faults.Always(faultstore.Complete, faultstore.FailBefore(errScripted))
	id, owner := store.ID{7}, store.Owner{8}
	batch := []store.RenewRequest{{ID: id, Owner: owner, Lease: time.Second}}
	payload := []byte("answer")

	_, _ = st.Claim(t.Context(), store.ClaimRequest{ID: id, Owner: owner, MaxAttempts: 3})
	_, _ = st.Renew(t.Context(), batch)
	_ = st.Complete(t.Context(), store.CompleteRequest{ID: id, Owner: owner, Payload: payload})
	_ = st.Release(t.Context(), id, owner)
	_ = st.Unknown(t.Context(), store.UnknownRequest{ID: id, Owner: owner, Reason: "timeout"})
	batch[0].Lease = 0
	copy(payload, "reused")

	calls := faults.Calls()
	ops := make([]faultstore.Op, len(calls))
	for i, c := range calls {
		ops[i] = c.Op
		if faults.Count(c.Op) != 1 {
			t.Errorf("%v counted %d times, want once", c.Op, faults.Count(c.Op))
		}
		if c.Op != faultstore.Renew && (c.ID != id || c.Owner != owner) {
			t.Errorf("%v logged for %v and %v", c.Op, c.ID, c.Owner)
		}
	}
	want := []faultstore.Op{faultstore.Claim, faultstore.Renew, faultstore.Complete, faultstore.Release, faultstore.Unknown}
	if !slices.Equal(ops, want) {
		t.Fatalf("logged %v, want %v", ops, want)
	}
	if calls[0].Claim.MaxAttempts != 3 || calls[1].Renew[0].Lease != time.Second || string(calls[2].Complete.Payload) != "answer" || calls[4].Unknown.Reason != "timeout" {
		t.Errorf("logged arguments %+v", calls)
	}
}
