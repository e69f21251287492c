package mysql

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// halting is a connection whose updates do not arrive after the first few of all
// connections.
type halting struct {
	*net.TCPConn

	sends *sync.Map // the connections that sent one
	left  *atomic.Int64
	halt  func()
}

func (c *halting) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("\x03UPDATE")) {
		c.sends.Store(c, true)
		if c.left.Add(-1) < 0 {
			c.halt()
			return len(p), nil
		}
	}
	return c.TCPConn.Write(p)
}

// TestRenewalKeepsWhatItDid: a batch is renewed over several connections, and a context
// that ends meanwhile leaves only the entries that it hit to be asked for again.
func TestRenewalKeepsWhatItDid(t *testing.T) {
	t.Parallel()
	const entries, most = 200, 120
	raw := newDatabase(t)
	witness := newStore(t, mysqlserver.Pool(t, raw, 0), reprisemysql.Config{})
	batch := make([]store.RenewRequest, entries)
	for i := range batch {
		r := labtest.Claimed(t, witness)
		batch[i] = store.RenewRequest{ID: r.ID, Owner: r.Owner, Lease: time.Hour}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		sends sync.Map
		left  atomic.Int64
	)
	left.Store(most)
	st, err := reprisemysql.New(wrapped(t, raw, true, func(conn *net.TCPConn) net.Conn {
		return &halting{conn, &sends, &left, cancel}
	}), reprisemysql.Config{})
	labtest.Must(t, err)
	statuses, err := st.Renew(ctx, batch)
	if err != nil {
		t.Fatalf("the whole batch failed: %v", err)
	}
	count := map[store.RenewStatus]int{}
	for i, status := range statuses {
		count[status]++
		record, err := witness.Inspect(t.Context(), batch[i].ID)
		labtest.Must(t, err)
		if status == store.Renewed && record.Lease < 30*time.Minute {
			t.Errorf("entry %d answers %v, and was not", i, status)
		}
	}
	if count[store.Renewed] < most/2 || count[store.Renewed]+count[store.RenewBusy] != entries {
		t.Errorf("the statuses are %v, want about %d renewed and the others busy", count, most)
	}
	conns := 0
	sends.Range(func(any, any) bool { conns++; return true })
	if conns < 2 || conns > 4 {
		t.Errorf("%d connections of a pool of eight sent updates, want 2 to 4", conns)
	}
	statuses, err = witness.Renew(t.Context(), batch)
	labtest.Must(t, err)
	for i, status := range statuses {
		if status != store.Renewed {
			t.Errorf("entry %d of the next batch answers %v", i, status)
		}
	}
}
