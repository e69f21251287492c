package repriseredis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

func TestARequestOutOfRangeSendsNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	s := newStore(t, f, Config{})
	ctx := t.Context()
	calls := map[string]func() error{
		"claim":    func() error { _, err := s.Claim(ctx, store.ClaimRequest{}); return err },
		"renew":    func() error { _, err := s.Renew(ctx, make([]store.RenewRequest, 1)); return err },
		"complete": func() error { return s.Complete(ctx, store.CompleteRequest{}) },
		"list":     func() error { _, err := s.List(ctx, store.Query{}); return err },
		"long":     func() error { _, err := s.List(ctx, store.Query{Limit: store.MaxPage + 1}); return err },
		"resolve":  func() error { return s.Resolve(ctx, store.ID{}, store.Resolution{}) },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if f.seen() != "" {
		t.Errorf("sent %q", f.seen())
	}
}

func TestUsageCountsConnectionsInUse(t *testing.T) {
	t.Parallel()
	asked, free := make(chan struct{}), make(chan struct{})
	f := newFake(t, func(_, _ int, _ []string) string {
		asked <- struct{}{}
		<-free
		return bulk("W")
	})
	s := newStore(t, f, Config{})
	done := make(chan error)
	for _, want := range []int64{1, 0} {
		if want == 1 {
			go func() { done <- s.Release(t.Context(), store.ID{}, store.Owner{1}) }()
			<-asked
		} else {
			close(free)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Usage(); len(got) != 1 || got[0].Name != "connections" || got[0].Used != want {
			t.Errorf("usage %v, want %d connections", got, want)
		}
	}
}

func TestTheClientStaysTheCallers(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	s := newStore(t, f, Config{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := claim(t, s); err != nil {
		t.Errorf("claim after Close: %v", err)
	}
	if _, _, err := s.Watch(t.Context(), store.ID{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("watch after Close: %v, want ErrClosed", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestAClosedClientIsClosed(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return claimed })
	client := newClient(t, f)
	s, err := New(client, Config{Prefix: servicePrefix})
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	if _, err := s.Claim(context.WithoutCancel(t.Context()), store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("claim: %v, want ErrClosed", err)
	}
}
