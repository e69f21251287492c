package mysql

import (
	"context"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// TestStatementsThatMeetAWriter: the row of a record is locked by another transaction, in
// every kind of session.
func TestStatementsThatMeetAWriter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, raw string, st *reprisemysql.Store){
		"a completion is judged by the clock afterwards": lateCompletion,
		"a release waits for the claim of its owner":     releaseBehindClaim, "a release and a claim wait for a takeover": behindTakeover,
		"a renewal does not wait": renewalBesideALock,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onSessions(t, func(t *testing.T, params string) {
				raw := newDatabase(t) + params
				test(t, raw, mysqlserver.Store(t, raw))
			})
		})
	}
}

// later calls f, and waits until its statement waits for the lock of a record.
func later(t *testing.T, raw string, f func() error) <-chan error {
	t.Helper()
	const waits = " AND (info LIKE 'UPDATE%' OR info LIKE 'INSERT%' OR info LIKE '%LOCK IN SHARE MODE')"
	before, done := lockWaits(t, raw, waits), make(chan error, 1)
	go func() { done <- f() }()
	labtest.Eventually(t, "a statement waits", func() bool { return lockWaits(t, raw, waits) > before })
	return done
}

// A completion that waits for the lock of its record does not complete one that has ended
// meanwhile. Others have been told so.
func lateCompletion(t *testing.T, raw string, st *reprisemysql.Store) {
	t.Helper()
	r := labtest.NewClaim()
	r.Lease, r.Policy = time.Millisecond, store.Policy{Retention: time.Second}
	labtest.WantClaim(t, st, r, store.Claimed)
	ends := time.Now().Add(r.Retention)
	other := writing(t, raw, "UPDATE reprise_records SET label = 'locked' WHERE id = ?", r.ID[:])
	completed := later(t, raw, func() error { return st.Complete(t.Context(), labtest.Completion(r, "late")) })
	time.Sleep(time.Until(ends)) //nolint:forbidigo // the record ends
	labtest.Must(t, other.Rollback())
	labtest.Want(t, "a late completion", <-completed, store.ErrLeaseLost)
}

// A claim whose caller has left may still be written. The release that follows is no
// success before that.
func releaseBehindClaim(t *testing.T, raw string, st *reprisemysql.Store) {
	t.Helper()
	r, first := labtest.NewClaim(), labtest.Claimed(t, st)
	writer := writing(t, raw, "UPDATE reprise_records SET id = ? WHERE id = ?", r.ID[:], first.ID[:])
	ctx, cancel := context.WithCancel(t.Context())
	claimed := later(t, raw, func() error { _, err := st.Claim(ctx, r); return err })
	released := later(t, raw, func() error { return st.Release(ctx, r.ID, r.Owner) })
	cancel()
	labtest.Want(t, "a claim that waits for the writer of its ID", <-claimed, store.ErrUnknown)
	if <-released == nil {
		t.Error("released, while the claim may still be written")
	}
	labtest.Must(t, writer.Rollback())
	// The server may write the claim after a release that begins in the moment in which the
	// other leaves the row: then the next release ends it, or its lease does.
	labtest.Eventually(t, "it is released", func() bool {
		labtest.Must(t, st.Release(t.Context(), r.ID, r.Owner))
		got, err := st.Claim(t.Context(), labtest.Rival(r))
		labtest.Must(t, err)
		return got.Outcome == store.Claimed
	})
}

// So may a claim that takes a lapsed record over, which shows another owner until then.
// Another claim, which may not take it over, waits too, and is busy if it gives up.
func behindTakeover(t *testing.T, raw string, st *reprisemysql.Store) {
	t.Helper()
	r := labtest.NewClaim()
	r.Lease, r.AtMostOnce = time.Millisecond, true
	labtest.WantClaim(t, st, r, store.Claimed)
	next := labtest.Rival(r)
	claim := writing(t, raw, "UPDATE reprise_records SET owner = ?, attempt = 2, fence = fence + 1, revision = revision + 1, "+
		"lease_until = lease_until + 3600000000 WHERE id = ?", next.Owner[:], r.ID[:])
	released := later(t, raw, func() error { return st.Release(t.Context(), next.ID, next.Owner) })
	ctx, cancel := context.WithCancel(t.Context())
	refused := later(t, raw, func() error { _, err := st.Claim(ctx, labtest.Rival(r)); return err })
	cancel()
	labtest.Want(t, "a claim that gave up", <-refused, store.ErrBusy)
	labtest.Must(t, claim.Commit())
	labtest.Must(t, <-released)
	labtest.WantClaim(t, st, labtest.Rival(r), store.Claimed)
}

// The leases of the others in its batch would run out.
func renewalBesideALock(t *testing.T, raw string, st *reprisemysql.Store) {
	t.Helper()
	locked, free := labtest.Claimed(t, st), labtest.Claimed(t, st)
	other := writing(t, raw, "SELECT id FROM reprise_records WHERE id = ? FOR UPDATE", locked.ID[:])
	batch := []store.RenewRequest{{ID: locked.ID, Owner: locked.Owner, Lease: time.Minute}, {ID: free.ID, Owner: free.Owner, Lease: time.Minute}}
	for _, want := range []store.RenewStatus{store.RenewBusy, store.Renewed} {
		got, err := st.Renew(t.Context(), batch)
		if err != nil || got[0] != want || got[1] != store.Renewed {
			t.Fatalf("%v, %v; want %v and renewed", got, err, want)
		}
		_ = other.Rollback()
	}
}

// TestClaimWhoseSnapshotIsLaterThanItsClock: a claim may read the clock before an attempt
// begins, and the record after that attempt said that its outcome is unknown. The record
// is not in progress for it.
func TestClaimWhoseSnapshotIsLaterThanItsClock(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	st, r := mysqlserver.Store(t, raw), labtest.NewClaim()
	done := labtest.Completed(t, st, "answer")
	for range 64 { // replays, which are common then: a claim looks first
		labtest.WantClaim(t, st, labtest.Rival(done), store.Completed)
	}
	own := mysqlserver.Pool(t, raw, 1)
	holder := newStore(t, own, reprisemysql.Config{})
	labtest.Claimed(t, holder)
	labtest.Exec(t, own, "LOCK TABLES reprise_records WRITE, reprise_records AS r WRITE")
	answer := make(chan store.ClaimResult, 1)
	go func() {
		got, err := st.Claim(t.Context(), labtest.Rival(r))
		if err != nil {
			t.Error(err)
		}
		answer <- got
	}()
	labtest.Eventually(t, "the look waits for the table", func() bool {
		return count(t, raw, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table metadata lock'") > 0
	})
	labtest.WantClaim(t, holder, r, store.Claimed)
	labtest.Must(t, holder.Unknown(t.Context(), store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "a time-out"}))
	labtest.Exec(t, own, "UNLOCK TABLES")
	if got := <-answer; got.Outcome != store.Lapsed {
		t.Errorf("the claim answered %v, want lapsed", got.Outcome)
	}
}
