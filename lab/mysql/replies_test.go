package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// TestLostStatementIsRepeatable: a write whose request or reply is lost is unknown, and
// the owner that repeats it gets the answer that was lost. The store repeats a read.
func TestLostStatementIsRepeatable(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t)
	proxy := servers.StartProxy(t, server.Addr())
	raw := mysqlserver.New(t, server)
	st, witness := mysqlserver.Store(t, proxy.URL(raw)), mysqlserver.Store(t, raw)
	for _, action := range []servers.Action{servers.LoseReply, servers.LoseRequest, servers.CutAfter} {
		lost := func(what, match string, want error, operation func() error) {
			t.Helper()
			labtest.Claimed(t, st) // there is a connection
			done := proxy.On(match, action)
			if err := operation(); !errors.Is(err, want) {
				t.Errorf("action %d, %s: %v, want %v", action, what, err, want)
			}
			<-done
			if err := operation(); err != nil {
				t.Errorf("action %d, %s repeated: %v", action, what, err)
			}
		}
		for read, want := range map[bool]error{true: nil, false: store.ErrUnknown} {
			match := func(write string) string {
				if read {
					return "\x03SELECT"
				}
				return write
			}
			r := labtest.NewClaim()
			if read { // only where there is a record is it read
				labtest.WantClaim(t, st, r, store.Claimed)
			}
			var granted store.ClaimResult
			lost("claim", match("INSERT INTO"), want, func() (err error) {
				granted, err = st.Claim(t.Context(), r)
				return err
			})
			if granted.Outcome != store.Claimed || granted.Attempt != 1 {
				t.Errorf("the repeated claim: %v, attempt %d", granted.Outcome, granted.Attempt)
			}
			labtest.WantClaim(t, witness, labtest.Rival(r), store.InProgress)
			lost("renew", match("\x03UPDATE"), want, func() error {
				statuses, err := st.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
				for err == nil && statuses[0] == store.RenewBusy { // the statement whose client is gone still has the row
					statuses, err = st.Renew(t.Context(), []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
				}
				if err == nil && statuses[0] != store.Renewed {
					err = fmt.Errorf("renewed: %v", statuses[0])
				}
				return err
			})
			if read {
				labtest.Must(t, st.Complete(t.Context(), labtest.Completion(r, "answer")))
			}
			lost("complete", match("\x03UPDATE"), want, func() error {
				return st.Complete(t.Context(), labtest.Completion(r, "answer"))
			})
			if got := labtest.WantClaim(t, witness, labtest.Rival(r), store.Completed); string(got.Payload) != "answer" {
				t.Errorf("replayed %q", got.Payload)
			}
			released, unknown := labtest.NewClaim(), labtest.NewClaim()
			labtest.WantClaim(t, st, released, store.Claimed)
			lost("release", match("\x03UPDATE"), want, func() error { return st.Release(t.Context(), released.ID, released.Owner) })
			labtest.WantClaim(t, witness, labtest.Rival(released), store.Claimed)
			labtest.WantClaim(t, st, unknown, store.Claimed)
			lost("unknown", match("\x03UPDATE"), want, func() error {
				return st.Unknown(t.Context(), store.UnknownRequest{ID: unknown.ID, Owner: unknown.Owner, Reason: "the bank timed out"})
			})
			labtest.WantClaim(t, witness, labtest.Rival(unknown), store.Lapsed)
		}
	}
}

// TestMissingConnectionHasItsCause: on a server that hangs, a call whose pool may open
// another connection found no server, and one whose pool is exhausted waited for that.
func TestMissingConnectionHasItsCause(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t)
	raw := mysqlserver.New(t, server)
	for conns, want := range map[int]error{0: store.ErrUnavailable, 2: store.ErrBusy, 3: store.ErrUnavailable} {
		db := mysqlserver.Pool(t, raw, conns)
		for range 2 {
			held, err := db.Conn(t.Context())
			labtest.Must(t, err)
			t.Cleanup(func() { _ = held.Close() })
		}
		server.Pause(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := newStore(t, db, reprisemysql.Config{}).Claim(ctx, labtest.NewClaim())
		cancel()
		server.Resume(t)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), fmt.Sprintf("(2 are in use; the limit is %d)", conns)) {
			t.Errorf("a pool of %d: %v, want %v", conns, err, want)
		}
	}
}
