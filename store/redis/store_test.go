package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
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
	s := over(t, client, Config{})
	_ = client.Close()
	if _, err := s.Claim(context.WithoutCancel(t.Context()), store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("claim: %v, want ErrClosed", err)
	}
}

// One entry that cannot be renewed must not keep the others from it.
func TestABatchOfRenewalsIsIndependent(t *testing.T) {
	t.Parallel()
	answers := []string{bulk("W"), bulk("!"), bulk("F"), bulk("X"), "-BUSY Redis is busy\r\n"}
	f := newFake(t, func(_, call int, _ []string) string { return answers[call-1] })
	batch := make([]store.RenewRequest, len(answers))
	for i := range batch {
		batch[i] = store.RenewRequest{ID: store.ID{byte(i)}, Owner: store.Owner{1}, Lease: time.Second}
	}
	got, err := newStore(t, f, Config{}).Renew(t.Context(), batch)
	want := []store.RenewStatus{store.Renewed, store.RenewBusy, store.RenewCompleted, store.RenewLost, store.RenewBusy}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("renew = %v, %v; want %v", got, err, want)
	}
}

// The first entry only waits for its script to be sent; the second is why no more is
// sent in time.
func TestAnEntryThatWasNotSentAgainHasFailed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := newFake(t, func(_, call int, _ []string) string {
		if call == 1 {
			return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
		}
		cancel()
		return "-LOADING Redis is loading the dataset in memory\r\n"
	})
	client := redis.NewClient(&redis.Options{Addr: f.Addr, Protocol: 2, DisableIdentity: true}) // reads on after the cancellation
	t.Cleanup(func() { _ = client.Close() })
	batch := []store.RenewRequest{{ID: store.ID{1}, Owner: store.Owner{1}, Lease: time.Second}, {ID: store.ID{2}, Owner: store.Owner{1}, Lease: time.Second}}
	s := over(t, client, Config{})
	if got, err := s.Renew(ctx, batch); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("renew = %v, %v; want ErrUnavailable", got, err)
	}
}

func TestABatchThatFailedAsAWholeIsAnError(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return "-BUSY Redis is busy\r\n" })
	batch := []store.RenewRequest{{ID: store.ID{1}, Owner: store.Owner{1}, Lease: time.Second}, {ID: store.ID{2}, Owner: store.Owner{1}, Lease: time.Second}}
	if got, err := newStore(t, f, Config{}).Renew(t.Context(), batch); !errors.Is(err, store.ErrUnavailable) || got != nil {
		t.Errorf("renew = %v, %v; want ErrUnavailable", got, err)
	}
}
