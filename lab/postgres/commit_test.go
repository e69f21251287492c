package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// The tests of this file lose the reply to a COMMIT. There is one rule: an applied step
// never gets ErrNotApplied, and a step that was not applied never gets success.

// pgCut is a transactional store that is reached through a proxy, and one that is not.
type pgCut struct {
	*pgFixture
	proxy *servers.Proxy
	cut   *labtest.TxStore
	store *labtest.TxStore
}

// newPgCut sends batches as one piece that contains the text COMMIT, for the proxy to
// find.
func newPgCut(t *testing.T, server *servers.PostgresServer, options ...labtest.PoolOption) *pgCut {
	t.Helper()
	f := pgSetup(t, server)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (owner bytea)")
	proxy := servers.StartProxy(t, server.Addr())
	through := pgOn(labtest.NewPool(t, proxy.URL(server.URL()), append(options, labtest.ExecMode(pgx.QueryExecModeExec))...), f.Config)
	return &pgCut{pgFixture: f, proxy: proxy, cut: through.Transactional(t), store: f.Transactional(t)}
}

// begin claims through the proxy and leaves an effect.
func (c *pgCut) begin(t *testing.T, through *labtest.TxStore) store.ClaimRequest {
	t.Helper()
	r := labtest.Claimed(t, through)
	labtest.Must(t, pgExecTx(through.Bind(t.Context(), r.ID, r.Owner), c.insertion(), r.Owner[:]))
	return r
}

// applied reports whether the effect of an owner is there, and fails the test when the
// record says otherwise.
func (c *pgCut) applied(t *testing.T, r store.ClaimRequest) bool {
	t.Helper()
	effects := pgValue[int](t, c.Pool, "SELECT count(*) FROM "+c.name("effects")+" WHERE owner = $1", r.Owner[:])
	records := pgValue[int](t, c.Pool, "SELECT count(*) FROM "+c.records()+" WHERE owner = $1 AND state = 2", r.Owner[:])
	if effects != records || effects > 1 {
		t.Errorf("%d effects and %d records of one owner", effects, records)
	}
	return effects == 1
}

// judge compares the result of a completion with the record.
func (c *pgCut) judge(t *testing.T, r store.ClaimRequest, err error) {
	t.Helper()
	switch applied := c.applied(t, r); {
	case applied && errors.Is(err, store.ErrNotApplied):
		t.Errorf("applied, and answered %v", err)
	case !applied && err == nil:
		t.Error("not applied, and answered with success")
	}
}

// TestPostgresCommitReplyLost: the proxy loses the request, the reply, or the connection
// in between, and the store still reports the true result. When it cannot read the record
// either, the outcome is unknown, and the next read decides.
func TestPostgresCommitReplyLost(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	c := newPgCut(t, server)
	overSQL := c.transactionalSQL(t, labtest.NewDB(t, c.proxy.URL(server.URL()), labtest.ExecMode(pgx.QueryExecModeExec)))
	for _, test := range []struct {
		name   string
		action servers.Action
		want   []error // any of them; nil is success
	}{
		{"request lost", servers.LoseRequest, []error{store.ErrNotApplied}},
		{"reply lost", servers.LoseReply, []error{nil}},
		{"cut after the request", servers.CutAfter, []error{nil, store.ErrNotApplied}},
	} {
		for _, cut := range []*labtest.TxStore{c.cut, overSQL} {
			for range 5 {
				r := c.begin(t, cut)
				c.proxy.On("COMMIT", test.action)
				err := labtest.Complete(t, cut, r, "answer")
				c.judge(t, r, err)
				if !labtest.IsOneOf(err, test.want) {
					t.Errorf("%s: complete answered %v, want one of %v", test.name, err, test.want)
				}
			}
		}
	}
	t.Run("and the look at its effect as well", func(t *testing.T) {
		r := c.begin(t, c.cut)
		c.proxy.On("COMMIT", servers.LoseReply)
		c.proxy.On("SET revision = revision + 1", servers.LoseRequest)
		err := labtest.Complete(t, c.cut, r, "answer")
		c.judge(t, r, err)
		labtest.Want(t, "complete", err, store.ErrUnknown)
		labtest.WantClaim(t, c.store, labtest.Rival(r), store.Completed) // the retry finds out
	})
	t.Run("and the record is not free", func(t *testing.T) {
		r := c.begin(t, c.cut)
		holder, err := c.Pool.Begin(t.Context())
		labtest.Must(t, err)
		c.proxy.On("COMMIT", servers.LoseRequest)
		pgExec(t, holder, "SELECT 1 FROM "+c.records()+" WHERE id = $1 FOR UPDATE", r.ID[:])
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		labtest.Want(t, "complete", c.cut.Complete(ctx, labtest.Completion(r, "answer")), store.ErrUnknown)
		labtest.Must(t, holder.Rollback(t.Context()))
		if c.applied(t, r) {
			t.Error("it was applied")
		}
	})
	t.Run("and its caller left before the look", func(t *testing.T) {
		r := c.begin(t, c.cut)
		c.proxy.Set(t, servers.Swallow)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		labtest.Want(t, "complete", c.cut.Complete(ctx, labtest.Completion(r, "answer")), store.ErrUnknown)
		c.proxy.Set(t, servers.Forward)
		labtest.WantClaim(t, c.store, labtest.Rival(r), store.InProgress) // it keeps its lease
		if c.applied(t, r) {
			t.Error("it was applied")
		}
	})
	t.Run("and another attempt has the record", func(t *testing.T) {
		r := c.begin(t, c.cut)
		c.exec(t, c.pgDamage("lease_until = "+pgNow), r.ID[:])
		rival := labtest.Rival(r)
		labtest.WantClaim(t, c.store, rival, store.Claimed)
		c.proxy.On("COMMIT", servers.LoseRequest)
		err := labtest.Complete(t, c.cut, r, "answer")
		c.judge(t, r, err)
		labtest.Want(t, "complete", err, store.ErrUnknown)
		labtest.Must(t, labtest.Complete(t, c.store, rival, "of the rival"))
	})
}

// TestPostgresCommitHeldByStandby: while a synchronous standby does not confirm, a COMMIT
// gets no reply. No applied commit is reported as rolled back,
// and none as confirmed that no standby has.
func TestPostgresCommitHeldByStandby(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	standby := server.StartStandby(t)
	c := newPgCut(t, server, pgObserve)
	server.Set(t, "synchronous_standby_names=*")
	standby.AwaitSynchronous(t)

	r := c.begin(t, c.cut)
	labtest.Must(t, labtest.Complete(t, c.cut, r, "answer"))

	// The observer's resources are made before the standby is cut off; from then on no
	// commit returns.
	held := []store.ClaimRequest{c.begin(t, c.cut), c.begin(t, c.cut)}
	standby.Link.Set(t, servers.Stall)
	defer c.proxy.Cut() // a silent connection would hold up the pool's end
	answers := make([]error, len(held))
	for i, action := range []servers.Action{servers.Pass, servers.Silence} {
		c.proxy.On("COMMIT", action)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		answers[i] = c.cut.Complete(ctx, labtest.Completion(held[i], "answer"))
		cancel()
		labtest.Want(t, "complete that no standby confirms", answers[i], store.ErrUnknown)
	}
	standby.Link.Set(t, servers.Forward)
	standby.AwaitSynchronous(t)
	for i, r := range held {
		labtest.Eventually(t, "the record is visible", func() bool { return c.applied(t, r) })
		c.judge(t, r, answers[i])
		labtest.WantClaim(t, c.store, labtest.Rival(r), store.Completed)
	}
}

// TestPostgresCancelledStandbyWait: a commit whose wait for the standby was cancelled is
// no success, on either store, and its repetition waits again.
func TestPostgresCancelledStandbyWait(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	standby := server.StartStandby(t)
	const name = "waits-for-standby"
	f := pgSetup(t, server, pgObserve, labtest.SessionParam("application_name", name))
	f.Config.TxTimeout = 10 * time.Minute
	leased, transactional := f.Leased(t), f.Transactional(t)
	throughSQL, err := reprisepg.NewSQL(labtest.NewDB(t, server.URL(), pgObserve, labtest.SessionParam("application_name", name)), f.Config)
	labtest.Must(t, err)
	witness := labtest.NewPool(t, server.URL())
	running, attempt := labtest.NewClaim(), labtest.NewClaim()
	labtest.WantClaim(t, leased, running, store.Claimed)
	labtest.WantClaim(t, transactional, attempt, store.Claimed)
	server.Set(t, "synchronous_standby_names=*")
	standby.AwaitSynchronous(t)
	standby.Link.Set(t, servers.Stall)

	cancelled := func(what string, operation func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		answer := make(chan error, 1)
		go func() { answer <- operation(ctx) }()
		for {
			select {
			case err := <-answer:
				if !errors.Is(err, store.ErrNotReplicated) {
					t.Errorf("%s: %v, want ErrNotReplicated", what, err)
				}
				return
			case <-time.After(5 * time.Millisecond): // polls
			}
			f.cancelWaits(t, witness, name)
		}
	}
	another := labtest.NewClaim()
	cancelled("claim", func(ctx context.Context) error { _, err := leased.Claim(ctx, another); return err })
	cancelled("claim again", func(ctx context.Context) error { _, err := leased.Claim(ctx, another); return err })
	cancelled("claim through database/sql", func(ctx context.Context) error { _, err := throughSQL.Claim(ctx, labtest.NewClaim()); return err })
	cancelled("renew", func(ctx context.Context) error {
		_, err := leased.Renew(ctx, []store.RenewRequest{{ID: running.ID, Owner: running.Owner, Lease: time.Minute}})
		return err
	})
	complete := func(ctx context.Context) error { return leased.Complete(ctx, labtest.Completion(running, "answer")) }
	cancelled("complete", complete)
	cancelled("complete again", complete)
	commit := func(ctx context.Context) error {
		return transactional.Complete(ctx, labtest.Completion(attempt, "answer"))
	}
	tx := pgTx(t, transactional, attempt)
	pgExec(t, tx, "SELECT 1")
	cancelled("commit", commit)

	standby.Link.Set(t, servers.Forward)
	standby.AwaitSynchronous(t)
	labtest.Must(t, complete(t.Context()))
	labtest.WantClaim(t, leased, labtest.Rival(attempt), store.Completed) // which is what the retry gets
}

// cancelWaits cancels whatever waits for the standby now, of the sessions of a name.
func (f *pgFixture) cancelWaits(t *testing.T, witness *pgxpool.Pool, name string) {
	t.Helper()
	pgValue[int](t, witness, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE application_name = $1 AND wait_event = 'SyncRep'", name)
}

// TestPostgresPromotion: after a failover the new primary decides. A write that it lacks
// was not applied, and a record that it has is replayed.
func TestPostgresPromotion(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	f := pgSetup(t, server)
	st := f.Transactional(t)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (owner bytea)")
	standby := server.StartStandby(t)
	done, open := labtest.NewClaim(), labtest.NewClaim()
	labtest.WantClaim(t, st, done, store.Claimed)
	labtest.Must(t, labtest.Complete(t, st, done, "answer"))
	labtest.WantClaim(t, st, open, store.Claimed)
	pgTx(t, st, open)

	after := pgOn(labtest.NewPool(t, standby.URL()), f.Config)
	labtest.Eventually(t, "the standby has the record", func() bool {
		return pgValue[int](t, after.Pool, "SELECT count(*) FROM "+f.records()) == 2
	})
	server.Kill(t)
	standby.Promote(t)
	after.Pool.Reset()
	if err := labtest.Complete(t, st, open, "lost"); !errors.Is(err, store.ErrNotApplied) && !errors.Is(err, store.ErrUnknown) {
		t.Errorf("complete on a dead primary: %v", err)
	}
	promoted := after.Transactional(t)
	if got := labtest.WantClaim(t, promoted, labtest.Rival(done), store.Completed); string(got.Payload) != "answer" {
		t.Errorf("replayed %q", got.Payload)
	}
	retry := labtest.Rival(open)
	f.Pool = after.Pool
	f.exec(t, f.pgDamage("lease_until = "+pgNow), open.ID[:])
	labtest.WantClaim(t, promoted, retry, store.Claimed)
	labtest.Must(t, labtest.Complete(t, promoted, retry, "answer"))
}
