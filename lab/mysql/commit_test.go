package mysql

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// The tests of this file lose the reply to a COMMIT. There is one rule: an attempt that
// was applied never gets ErrNotApplied or ErrLeaseLost, and one that was not never gets
// success.

// commitText is a COMMIT on its way to the server: the byte of a query, and its text.
const commitText = "\x03COMMIT"

// commitCut is a store that is reached through a proxy.
type commitCut struct {
	raw   string // URL past the proxy
	proxy *servers.Proxy
	store *labtest.TxStore
}

func newCommitCut(t *testing.T, server *servers.MariaDBServer, params string) *commitCut {
	t.Helper()
	raw := withEffects(t, server)
	proxy := servers.StartProxy(t, server.Addr())
	return &commitCut{raw, proxy, transactional(t, mysqlserver.Pool(t, proxy.URL(raw)+params, 0), reprisemysql.Config{})}
}

// begin claims, and writes an effect.
func (c *commitCut) begin(t *testing.T) *labtest.Attempt {
	t.Helper()
	a := begin(t, c.store, labtest.NewClaim())
	a.Effect(t)
	return a
}

// applied reports whether the effect is there, and demands that the record says the same.
func (c *commitCut) applied(t *testing.T, a *labtest.Attempt) bool {
	t.Helper()
	n := count(t, c.raw, "SELECT 2 * (SELECT COUNT(*) FROM effects) + (SELECT COUNT(*) FROM reprise_records WHERE id = ? AND owner = ? AND state = 2)", a.ID[:], a.Owner[:])
	if n%3 != 0 {
		t.Errorf("%d effects and %d completed records", n/2, n%2)
	}
	return n == 3
}

// judge compares the result of a completion with the database, and has the key claimed
// again. The answer is replayed, or the attempt repeated: there is one effect in the end.
func (c *commitCut) judge(t *testing.T, a *labtest.Attempt, err error, want ...error) {
	t.Helper()
	applied := c.applied(t, a)
	if applied != (err == nil) && !errors.Is(err, store.ErrUnknown) {
		t.Errorf("applied: %t, and answered %v", applied, err)
	}
	if !labtest.IsOneOf(err, want) {
		t.Errorf("complete: %v, want one of %v", err, want)
	}
	next := labtest.Rival(a.ClaimRequest)
	if applied {
		if got := labtest.WantClaim(t, c.store, next, store.Completed); string(got.Payload) != "answer" {
			t.Errorf("replayed %q", got.Payload)
		}
	} else {
		again := begin(t, c.store, next)
		again.Effect(t)
		labtest.Want(t, "the attempt that followed", again.End(t), nil)
	}
	wantEffects(t, c.raw, 1)
	mysqlserver.Exec(t, c.raw, "DELETE FROM effects")
}

// TestLostCommitIsSettled: the store finds out whether it was executed. Where it cannot,
// it says so as over PostgreSQL, by the same code.
func TestLostCommitIsSettled(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t)
	for _, params := range []string{"", "?interpolateParams=false"} {
		for name, test := range map[string]struct {
			action servers.Action
			want   []error
		}{
			"request lost": {servers.LoseRequest, []error{store.ErrNotApplied}},
			"reply lost":   {servers.LoseReply, []error{nil}},
			"cut":          {servers.CutAfter, []error{nil, store.ErrNotApplied}},
		} {
			t.Run(name+params, func(t *testing.T) {
				t.Parallel()
				c := newCommitCut(t, server, params)
				for range 5 {
					a := c.begin(t)
					done := c.proxy.On(commitText, test.action)
					err := a.End(t)
					<-done
					c.judge(t, a, err, test.want...)
				}
			})
		}
	}
}

// TestCommitThatIsStillOnItsWayIsUnknown: a server that is slow to commit goes on with it
// when its client has left. Until then no other attempt runs. The server does not hear
// that the client has left: it looks once a second, and gives up a commit that waits.
func TestCommitThatIsStillOnItsWayIsUnknown(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t)
	c := newCommitCut(t, server, "")
	a := c.begin(t)
	end := blockCommits(t, c.raw)
	c.proxy.On(commitText, servers.Silence)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	labtest.Want(t, "complete", c.store.Complete(ctx, labtest.Completion(a.ClaimRequest, "answer")), store.ErrUnknown)
	if n := count(t, c.raw, "SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'COMMIT'"); n != 1 {
		t.Fatalf("%d sessions commit", n)
	}
	labtest.WantClaim(t, c.store, labtest.Rival(a.ClaimRequest), store.InProgress)
	end()
	labtest.Eventually(t, "it is applied", func() bool { return c.applied(t, a) })
	labtest.WantClaim(t, c.store, labtest.Rival(a.ClaimRequest), store.Completed)
}

// blockCommits makes every commit of the server wait until its end is called.
func blockCommits(t *testing.T, raw string) (end func()) {
	t.Helper()
	backup, err := mysqlserver.Pool(t, raw, 1).Conn(t.Context())
	labtest.Must(t, err)
	t.Cleanup(func() { _ = backup.Close() })
	stage := func(name string) {
		t.Helper()
		labtest.Exec(t, backup, "BACKUP STAGE "+name)
	}
	stage("START")
	stage("BLOCK_COMMIT")
	return func() { t.Helper(); stage("END") }
}
