package mysql

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// onStores runs a test on the store of a new database with every kind of session.
func onStores(t *testing.T, test func(t *testing.T, raw string, st *reprisemysql.Store)) {
	t.Helper()
	onSessions(t, func(t *testing.T, params string) {
		raw := newDatabase(t) + params
		test(t, raw, mysqlserver.Store(t, raw))
	})
}

// ending is a claim whose record ends in a second.
func ending(t *testing.T, st store.Store) (r store.ClaimRequest, ends time.Time) {
	t.Helper()
	r = labtest.NewClaim()
	r.Lease, r.Policy = time.Millisecond, store.Policy{Retention: time.Second}
	labtest.WantClaim(t, st, r, store.Claimed)
	return r, time.Now().Add(r.Retention)
}

// waiting waits until a statement of the database waits for the lock of a record.
func waiting(t *testing.T, raw string) {
	t.Helper()
	const query = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND command IN ('Query', 'Execute') " +
		"AND id <> CONNECTION_ID() AND (info LIKE 'UPDATE%' OR info LIKE '%LOCK IN SHARE MODE')"
	watch := mysqlserver.Pool(t, raw, 1)
	labtest.Eventually(t, "a statement waits", func() bool {
		n := 0
		return watch.QueryRowContext(t.Context(), query).Scan(&n) == nil && n > 0
	})
}

// TestWriteThatWaitedIsJudgedByTheClockAfterwards: a completion that waits for the lock
// of its record does not complete one that has ended meanwhile. Others have been told so.
func TestWriteThatWaitedIsJudgedByTheClockAfterwards(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, raw string, st *reprisemysql.Store) {
		r, ends := ending(t, st)
		other := writing(t, raw, "UPDATE reprise_records SET label = 'locked' WHERE id = ?", r.ID[:])
		completed := make(chan error)
		go func() { completed <- st.Complete(t.Context(), labtest.Completion(r, "late")) }()
		waiting(t, raw)
		time.Sleep(time.Until(ends)) //nolint:forbidigo // the record ends
		labtest.Must(t, other.Rollback())
		labtest.Want(t, "a late completion", <-completed, store.ErrLeaseLost)
	})
}

// TestRefusalWaitsForTheOneWhoWrites: a completion that began before the record ended may
// be committed after it. The owner's repetition is not refused in between.
func TestRefusalWaitsForTheOneWhoWrites(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, raw string, st *reprisemysql.Store) {
		r, ends := ending(t, st)
		first := writing(t, raw, "UPDATE reprise_records SET state = 2, revision = revision + 1, payload = 'answer', "+
			"valid_until = valid_until + 3600000000, replay_until = valid_until WHERE id = ?", r.ID[:])
		time.Sleep(time.Until(ends)) //nolint:forbidigo // the record that others see ends
		completed := make(chan error, 1)
		go func() { completed <- st.Complete(t.Context(), labtest.Completion(r, "answer")) }()
		waiting(t, raw)
		labtest.Must(t, first.Commit())
		labtest.Must(t, <-completed)
		labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
	})
}

// TestReleaseWaitsForTheClaimOfItsOwner: a claim whose caller has left may still be
// written. The release that follows is no success before that.
func TestReleaseWaitsForTheClaimOfItsOwner(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, raw string, st *reprisemysql.Store) {
		r := labtest.NewClaim()
		first := labtest.NewClaim()
		labtest.WantClaim(t, st, first, store.Claimed) // there is a connection
		writer := writing(t, raw, "UPDATE reprise_records SET id = ? WHERE id = ?", r.ID[:], first.ID[:])
		short := func(f func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			return f(ctx)
		}
		if err := short(func(ctx context.Context) error { _, err := st.Claim(ctx, r); return err }); !errors.Is(err, store.ErrUnknown) {
			t.Fatalf("%v, want ErrUnknown: the claim waits for the writer of its ID", err)
		}
		if err := short(func(ctx context.Context) error { return st.Release(ctx, r.ID, r.Owner) }); err == nil {
			t.Error("released, while the claim may still be written")
		}
		labtest.Must(t, writer.Rollback())
		// The server may write the claim after a release that begins in the moment in which
		// the other leaves the row: then the next release ends it, or its lease does.
		for {
			labtest.Must(t, st.Release(t.Context(), r.ID, r.Owner))
			if got, err := st.Claim(t.Context(), labtest.Rival(r)); err != nil {
				t.Fatal(err)
			} else if got.Outcome == store.Claimed {
				return
			}
		}
	})
}

// TestReleaseWaitsForTheTakeoverOfItsOwner: so may a claim that takes a lapsed record
// over, which shows another owner until then.
func TestReleaseWaitsForTheTakeoverOfItsOwner(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, raw string, st *reprisemysql.Store) {
		r := labtest.NewClaim()
		r.Lease = time.Millisecond
		labtest.WantClaim(t, st, r, store.Claimed)
		next := labtest.Rival(r)
		claim := writing(t, raw, "UPDATE reprise_records SET owner = ?, attempt = 2, fence = fence + 1, revision = revision + 1, "+
			"lease_until = lease_until + 3600000000 WHERE id = ?", next.Owner[:], r.ID[:])
		released := make(chan error, 1)
		go func() { released <- st.Release(t.Context(), next.ID, next.Owner) }()
		waiting(t, raw)
		labtest.Must(t, claim.Commit())
		labtest.Must(t, <-released)
		labtest.WantClaim(t, st, labtest.Rival(r), store.Claimed)
	})
}

// TestRenewalDoesNotWaitForARow: of a record that another transaction has locked, because
// the leases of the others in its batch would run out.
func TestRenewalDoesNotWaitForARow(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, raw string, st *reprisemysql.Store) {
		locked, free := labtest.NewClaim(), labtest.NewClaim()
		labtest.WantClaim(t, st, locked, store.Claimed)
		labtest.WantClaim(t, st, free, store.Claimed)
		other := writing(t, raw, "SELECT id FROM reprise_records WHERE id = ? FOR UPDATE", locked.ID[:])
		batch := []store.RenewRequest{{ID: locked.ID, Owner: locked.Owner, Lease: time.Minute}, {ID: free.ID, Owner: free.Owner, Lease: time.Minute}}
		for _, want := range []store.RenewStatus{store.RenewBusy, store.Renewed} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			got, err := st.Renew(ctx, batch)
			if cancel(); err != nil || got[0] != want || got[1] != store.Renewed {
				t.Fatalf("%v, %v; want %v and renewed", got, err, want)
			}
			_ = other.Rollback()
		}
	})
}

// TestClaimWhoseSnapshotIsLaterThanItsClock: a claim may read the clock before an attempt
// begins, and the record after that attempt said that its outcome is unknown. The record
// is not in progress for it.
func TestClaimWhoseSnapshotIsLaterThanItsClock(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	st, r := mysqlserver.Store(t, raw), labtest.NewClaim()
	labtest.Claimed(t, st) // its statements are prepared
	own := mysqlserver.Pool(t, raw, 1)
	holder := newStore(t, own, reprisemysql.Config{})
	labtest.Claimed(t, holder)
	_, err := own.ExecContext(t.Context(), "LOCK TABLES reprise_records WRITE, reprise_records AS r WRITE")
	labtest.Must(t, err)
	answer := make(chan store.ClaimResult, 1)
	go func() {
		got, err := st.Claim(t.Context(), labtest.Rival(r))
		if err != nil {
			t.Error(err)
		}
		answer <- got
	}()
	watch := mysqlserver.Pool(t, raw, 1)
	labtest.Eventually(t, "the look waits for the table", func() bool {
		n := 0
		return watch.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table metadata lock'").Scan(&n) == nil && n > 0
	})
	labtest.WantClaim(t, holder, r, store.Claimed)
	labtest.Must(t, holder.Unknown(t.Context(), store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "a time-out"}))
	_, err = own.ExecContext(t.Context(), "UNLOCK TABLES")
	labtest.Must(t, err)
	if got := <-answer; got.Outcome != store.Lapsed {
		t.Errorf("the claim answered %v, want lapsed", got.Outcome)
	}
}
