package mysql

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// TestRenewalKeepsWhatItDid: a batch is renewed over some of the connections, and a
// context that ends meanwhile leaves only the entries that it hit to be asked for again.
func TestRenewalKeepsWhatItDid(t *testing.T) {
	t.Parallel()
	const before = 120 // entries that are renewed before one hangs
	raw := newDatabase(t)
	proxy := servers.StartProxy(t, servers.SharedMariaDB(t).Addr())
	db := mysqlserver.Pool(t, proxy.URL(raw), 8)
	st, batch := newStore(t, db, reprisemysql.Config{}), make([]store.RenewRequest, 200)
	for i := range batch {
		r := labtest.Claimed(t, st)
		batch[i] = store.RenewRequest{ID: r.ID, Owner: r.Owner, Lease: time.Hour}
	}
	statuses, err := st.Renew(t.Context(), batch)
	labtest.Must(t, err)
	if n := db.Stats().OpenConnections; n < 2 || n > 4 || slices.ContainsFunc(statuses, func(s store.RenewStatus) bool { return s != store.Renewed }) {
		t.Errorf("%d connections of a pool of eight answered %v, want 2 to 4", n, statuses)
	}
	hangs := proxy.On("\x03UPDATE", append(slices.Repeat([]servers.Action{servers.Pass}, before), servers.Silence)...)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-hangs; cancel() }()
	statuses, err = st.Renew(ctx, batch)
	labtest.Must(t, err)
	count := map[store.RenewStatus]int{}
	for i, status := range statuses {
		count[status]++
		record, err := st.Inspect(t.Context(), batch[i].ID)
		labtest.Must(t, err)
		if status == store.Renewed && record.Lease < 30*time.Minute {
			t.Errorf("entry %d answers %v, and was not", i, status)
		}
	}
	if count[store.Renewed] < before/2 || count[store.Renewed] == len(batch) || count[store.Renewed]+count[store.RenewBusy] != len(batch) {
		t.Errorf("the statuses are %v, want about %d renewed and the others busy", count, before)
	}
	labtest.Eventually(t, "the next batch renews all", func() bool { // a statement that was left may still have its row
		statuses, err := st.Renew(t.Context(), batch)
		return err == nil && !slices.ContainsFunc(statuses, func(s store.RenewStatus) bool { return s != store.Renewed })
	})
}
