package postgres

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresPoolLeavesAStandby: connections that were made to a standby, as those of a
// name that pointed there, are closed when it refuses to write, and the call goes on with
// another one. Otherwise each claim would fail for as long as the pool keeps them.
func TestPostgresPoolLeavesAStandby(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	f := pgSetup(t, server)
	standby := server.StartStandby(t)
	replayed := labtest.Completed(t, f.Leased(t), pgBody)

	const conns = 6
	var (
		primary   atomic.Int32
		addresses = [2]string{standby.Addr(), server.Addr()}
	)
	wherever := func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addresses[primary.Load()])
		}
	}
	pool := labtest.NewPool(t, server.URL(), labtest.MaxConns(conns), wherever)
	db := labtest.NewDB(t, server.URL(), labtest.MaxConns(conns), wherever)
	db.SetMaxIdleConns(conns)
	overSQL, err := reprisepg.New(db, f.Config)
	labtest.Must(t, err)

	// No claim is answered by a standby, which may be behind: not while replays are common,
	// where a claim begins with a SELECT, alone or in a batch.
	st := pgOn(pool, f.Config).Leased(t)
	primary.Store(1)
	for range 100 {
		labtest.WantClaim(t, st, labtest.Rival(replayed), store.Completed)
	}
	pool.Reset()
	primary.Store(0)
	labtest.Eventually(t, "the standby has the record", func() bool {
		return pgValue[int](t, pool, "SELECT count(*) FROM pg_tables WHERE schemaname = $1", f.Config.Schema) == 2 &&
			pgValue[int](t, pool, "SELECT count(*) FROM "+f.records()+" WHERE state = 2") == 1
	})
	for _, callers := range []int{1, 16} { // those beyond the eighth are sent together
		pgTogether(callers, func(int) {
			if got, err := st.Claim(t.Context(), labtest.Rival(replayed)); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%d claims on a standby: %+v, %v", callers, got, err)
			}
		})
	}

	for name, on := range map[string]struct {
		st      *reprisepg.Store
		open    func() int
		connect func() (release func(), err error)
	}{
		"pgx": {pgOn(pool, f.Config).Leased(t), func() int { return int(pool.Stat().TotalConns()) }, func() (func(), error) {
			conn, err := pool.Acquire(t.Context())
			return func() { conn.Release() }, err
		}},
		"database/sql": {overSQL, func() int { return db.Stats().OpenConnections }, func() (func(), error) {
			conn, err := db.Conn(t.Context())
			return func() { _ = conn.Close() }, err
		}},
	} {
		primary.Store(0)
		var releases []func()
		for range conns { // all of them to the standby
			release, err := on.connect()
			labtest.Must(t, err)
			releases = append(releases, release)
		}
		for _, release := range releases {
			release()
		}
		ctx, tx := on.st.Transaction(t.Context(), store.ID{}, store.NewOwner())
		_, err := reprisepg.Tx(ctx)
		labtest.Want(t, name+": the transaction of a handler", err, store.ErrUnavailable)
		tx.Close()
		labtest.Eventually(t, name+": its connection leaves the pool", func() bool { return on.open() == conns-1 })
		primary.Store(1)
		for range conns {
			r := labtest.Claimed(t, on.st)
			_, err := on.st.Inspect(t.Context(), r.ID)
			labtest.Want(t, name+": inspect", err, nil)
			labtest.Want(t, name+": complete", labtest.Complete(t, on.st, r, pgBody), nil)
		}
		labtest.WantClaim(t, on.st, labtest.Rival(replayed), store.Completed)
	}
}

// TestPostgresReplaysDuringAnOutageOfItsStandby: once a commit was not confirmed, a
// replay waits for none of the calls that wait for the standby, though they are many
// more than the pool has connections, and releases are not combined.
func TestPostgresReplaysDuringAnOutageOfItsStandby(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	standby := server.StartStandby(t)
	const conns, calls = 10, 40
	f := pgSetup(t, server, labtest.MaxConns(conns))
	overPGX, err := reprisepg.New(f.Pool, f.Config)
	labtest.Must(t, err)
	overSQL, err := reprisepg.New(labtest.NewDB(t, server.URL(), labtest.MaxConns(conns)), f.Config)
	labtest.Must(t, err)
	var running []store.ClaimRequest
	for range calls {
		running = append(running, labtest.Claimed(t, overSQL))
	}
	replayed := labtest.Completed(t, f.Leased(t), pgBody)
	server.Set(t, "synchronous_standby_names=*")
	standby.AwaitSynchronous(t)

	for name, st := range map[string]*reprisepg.Store{"claims": overPGX, "releases": overSQL} {
		standby.Link.Set(t, servers.Stall)
		labtest.Eventually(t, name+": a claim is sent, and not confirmed", func() bool {
			brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := st.Claim(brief, labtest.NewClaim())
			return errors.Is(err, store.ErrUnknown)
		})
		var waiting sync.WaitGroup
		for _, r := range running {
			waiting.Go(func() {
				var err error
				if name == "claims" {
					_, err = st.Claim(t.Context(), labtest.NewClaim())
				} else {
					err = st.Release(t.Context(), r.ID, r.Owner)
				}
				if err != nil {
					t.Errorf("%s that wait for the standby: %v", name, err)
				}
			})
		}
		labtest.Eventually(t, "calls wait for the standby", func() bool { return st.Usage()[0].Used >= conns/2 })
		for range calls {
			labtest.WantClaim(t, st, labtest.Rival(replayed), store.Completed)
		}
		standby.Link.Set(t, servers.Forward)
		waiting.Wait()
	}
}
