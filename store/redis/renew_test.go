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
	s, err := New(client, Config{Prefix: servicePrefix})
	if err != nil {
		t.Fatal(err)
	}
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
