package repriseredis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
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

// An entry that cannot be renewed must not keep the others from it.
func TestABatchOfRenewals(t *testing.T) {
	t.Parallel()
	const busy = "-BUSY Redis is busy\r\n"
	for _, config := range []Config{{}, {NoCombining: true}} {
		for _, c := range []struct {
			answers []string // one for each entry
			want    string
			err     error
		}{
			{[]string{bulk("W"), bulk("!"), bulk("F"), bulk("X"), busy}, "[busy busy completed lost renewed]", nil},
			{[]string{busy, busy}, "[]", store.ErrUnavailable},
		} {
			f := newFake(t, func(_, call int, _ []string) string { return c.answers[call-1] })
			batch := make([]store.RenewRequest, len(c.answers))
			for i := range batch {
				batch[i] = store.RenewRequest{ID: store.ID{byte(i)}, Owner: store.Owner{1}, Lease: time.Second}
			}
			got, err := over(t, newClient(t, f), config).Renew(t.Context(), batch)
			slices.SortFunc(got, func(a, b store.RenewStatus) int { return strings.Compare(a.String(), b.String()) })
			if !errors.Is(err, c.err) || fmt.Sprint(got) != c.want || c.err != nil && got != nil {
				t.Errorf("renew = %v, %v; want %s, %v", got, err, c.want, c.err)
			}
		}
	}
}

// An answer stays that of its call when the connection breaks behind it, or the server is
// demoted. go-redis keeps the connection of such a server unless the first command of a
// pipeline was refused.
func TestAnAnswerOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	for _, answers := range [][]string{
		{bulk("W"), bulk("W"), cut, bulk("W")},
		{bulk("W"), "-READONLY You can't write against a read only replica.\r\n", bulk("W"), bulk("W")},
	} {
		f := newFake(t, func(_, call int, _ []string) string { return answers[call-1] })
		s := newStore(t, f, Config{})
		batch := make([]*command, 3)
		for i := range batch {
			c := &command{script: record.RenewScript, fixed: record.AppendOwned(nil, store.Owner{1}, time.Second)}
			s.call(c, store.ID{byte(i)}, &c.fixed)
			batch[i] = c
		}
		nodeFor(t, s).send(t.Context(), batch...)
		for _, c := range batch {
			if again, _ := s.evaluate(c); again {
				_, c.err = s.run(t.Context(), c)
			}
			if got := c.renewed(); got != store.Renewed {
				t.Errorf("after %q: renewed as %v, %v", answers, got, c.err)
			}
		}
		if f.seen() != "1 evalsha, 1 evalsha, 1 evalsha, 2 evalsha" {
			t.Errorf("after %q: sent %q, want only one again, on another connection", answers, f.seen())
		}
	}
}
