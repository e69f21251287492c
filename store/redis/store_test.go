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

func TestUsageCountsConnectionsInUse(t *testing.T) {
	t.Parallel()
	client := newClient(t, newFake(t, func(_, _ int, _ []string) string { return claimed }))
	s := over(t, client, Config{})
	held := client.Conn()
	for used := int64(1); used >= 0; used-- {
		if used == 0 {
			_ = held.Close()
		} else if err := held.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if got := s.Usage(); len(got) != 1 || got[0].Name != "connections" || got[0].Used != used {
			t.Errorf("usage %v, want %d connections", got, used)
		}
	}
}

// Close leaves the client to its owner, who may close it, too.
func TestTheClientStaysTheCallers(t *testing.T) {
	t.Parallel()
	client := newClient(t, newFake(t, func(_, _ int, _ []string) string { return claimed }))
	s := over(t, client, Config{})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := claim(t, s); err != nil {
		t.Errorf("claim after Close: %v", err)
	}
	if _, _, err := s.Watch(t.Context(), store.ID{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("watch after Close: %v, want ErrClosed", err)
	}
	_ = client.Close()
	if _, err := claim(t, s); !errors.Is(err, store.ErrClosed) {
		t.Errorf("claim over a closed client: %v, want ErrClosed", err)
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

// One entry that cannot be renewed must not keep the others from it, and an answer stays
// that of its call when the connection breaks behind it. go-redis keeps the connection of
// a server that was demoted unless the first command of a pipeline was refused.
func TestABatchOfRenewals(t *testing.T) {
	t.Parallel()
	const busy, demoted = "-BUSY Redis is busy\r\n", "-READONLY You can't write against a read only replica.\r\n"
	for _, c := range []struct {
		name    string
		answers []string // to the first calls; later ones get the last
		want    string
		err     error
		sent    string
	}{
		{"each its own", []string{bulk("W"), bulk("!"), bulk("F"), bulk("X"), busy}, "[renewed busy completed lost busy]", nil, ""},
		{"none", []string{busy, busy}, "[]", store.ErrUnavailable, ""},
		{"cut", []string{bulk("W"), bulk("W"), cut, bulk("W")}, "[renewed renewed renewed]", nil, "1 evalsha, 1 evalsha, 1 evalsha, 2 evalsha"},
		{"demoted", []string{bulk("W"), demoted, bulk("W"), bulk("W")}, "[renewed renewed renewed]", nil, "1 evalsha, 1 evalsha, 1 evalsha, 2 evalsha"},
	} {
		f := newFake(t, func(_, call int, _ []string) string { return c.answers[min(call, len(c.answers))-1] })
		batch := make([]store.RenewRequest, len(c.answers))
		if c.sent != "" {
			batch = batch[1:]
		}
		for i := range batch {
			batch[i] = store.RenewRequest{ID: store.ID{byte(i)}, Owner: store.Owner{1}, Lease: time.Second}
		}
		got, err := newStore(t, f, Config{}).Renew(t.Context(), batch)
		if !errors.Is(err, c.err) || fmt.Sprint(got) != c.want || c.err != nil && got != nil {
			t.Errorf("%s: renew = %v, %v; want %s, %v", c.name, got, err, c.want, c.err)
		}
		if c.sent != "" && f.seen() != c.sent {
			t.Errorf("%s: sent %q, want only one again, on another connection", c.name, f.seen())
		}
	}
}
