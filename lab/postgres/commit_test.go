package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/jackc/pgx/v5"
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
		c.proxy.On("COMMIT", servers.LoseRequest)
		holder := c.pgHold(t, "SELECT 1 FROM "+c.records()+" WHERE id = $1 FOR UPDATE", r.ID[:])
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

// TestPostgresUnconfirmedCommits: while a synchronous standby does not confirm, a COMMIT
// gets no reply. No applied commit is reported as rolled back, and none as confirmed that
// no standby has. One whose wait was cancelled is no success either, of any call, and its
// repetition waits again.
func TestPostgresUnconfirmedCommits(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	standby := server.StartStandby(t)
	const name = "waits-for-standby"
	c := newPgCut(t, server, pgObserve, labtest.SessionParam("application_name", name))
	throughSQL, err := reprisepg.New(labtest.NewDB(t, server.URL(), pgObserve, labtest.SessionParam("application_name", name)), c.Config)
	labtest.Must(t, err)
	witness := labtest.NewPool(t, server.URL())
	running := labtest.Claimed(t, c.cut)
	server.Set(t, "synchronous_standby_names=*")
	standby.AwaitSynchronous(t)
	confirmed := c.begin(t, c.cut)
	labtest.Must(t, labtest.Complete(t, c.cut, confirmed, "answer"))

	// The observer's resources are made before the standby is cut off; from then on no
	// commit returns.
	attempts := []store.ClaimRequest{c.begin(t, c.cut), c.begin(t, c.cut), c.begin(t, c.cut)}
	answers := make([]error, len(attempts))
	standby.Link.Set(t, servers.Stall)
	defer c.proxy.Cut() // a silent connection would hold up the pool's end
	for i, action := range []servers.Action{servers.Pass, servers.Silence} {
		c.proxy.On("COMMIT", action)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		answers[i] = c.cut.Complete(ctx, labtest.Completion(attempts[i], "answer"))
		cancel()
		labtest.Want(t, "complete that no standby confirms", answers[i], store.ErrUnknown)
	}

	cancelled := func(what string, operation func(context.Context) error) (err error) {
		t.Helper()
		ctx, cancel := labtest.Call(t)
		defer cancel()
		answer := make(chan error, 1)
		go func() { answer <- operation(ctx) }()
		labtest.Eventually(t, what, func() bool {
			pgValue[int](t, witness, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE application_name = $1 AND wait_event = 'SyncRep'", name)
			return len(answer) > 0
		})
		err = <-answer
		labtest.Want(t, what, err, store.ErrNotReplicated)
		return err
	}
	another := labtest.NewClaim()
	complete := func(ctx context.Context) error { return c.cut.Complete(ctx, labtest.Completion(running, "answer")) }
	for range 2 {
		_ = cancelled("claim", func(ctx context.Context) error { _, err := c.cut.Claim(ctx, another); return err })
		_ = cancelled("claim through database/sql", func(ctx context.Context) error { _, err := throughSQL.Claim(ctx, labtest.NewClaim()); return err })
		_ = cancelled("renew", func(ctx context.Context) error {
			_, err := c.cut.Renew(ctx, []store.RenewRequest{{ID: another.ID, Owner: another.Owner, Lease: time.Minute}})
			return err
		})
		_ = cancelled("complete", complete)
	}
	answers[2] = cancelled("commit", func(ctx context.Context) error { return c.cut.Complete(ctx, labtest.Completion(attempts[2], "answer")) })

	standby.Link.Set(t, servers.Forward)
	standby.AwaitSynchronous(t)
	labtest.Must(t, complete(t.Context()))
	for i, r := range attempts {
		labtest.Eventually(t, "the record is visible", func() bool { return c.applied(t, r) })
		c.judge(t, r, answers[i])
		labtest.WantClaim(t, c.store, labtest.Rival(r), store.Completed) // which is what the retry gets
	}
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
