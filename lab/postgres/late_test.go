package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// pgHold executes a statement in a transaction that stays open, and returns it.
func (f *pgFixture) pgHold(t *testing.T, statement string, args ...any) pgx.Tx {
	t.Helper()
	tx, err := f.Pool.Begin(t.Context())
	labtest.Must(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	pgExec(t, tx, statement, args...)
	return tx
}

// pgWaitsFor reports whether a statement waits for a transaction.
func (f *pgFixture) pgWaitsFor(t *testing.T, holder pgx.Tx) bool {
	t.Helper()
	return pgValue[bool](t, f.Pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))", holder.Conn().PgConn().PID())
}

// pgAnswer makes a call of a store, and returns its answer in a word.
func pgAnswer(ctx context.Context, st store.Store, call string, r store.ClaimRequest) string {
	var err error
	answer := "done"
	switch call {
	case "renew":
		var got []store.RenewStatus
		got, err = st.Renew(ctx, []store.RenewRequest{{ID: r.ID, Owner: r.Owner, Lease: r.Lease}})
		answer = fmt.Sprint(got)
	case "complete":
		err = st.Complete(ctx, labtest.Completion(r, "answer"))
	case "unknown":
		err = st.Unknown(ctx, store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "why"})
	case "release":
		err = st.Release(ctx, r.ID, r.Owner)
	case "rival claims", "careful claims":
		r, r.Takeover = labtest.Rival(r), call == "rival claims"
		return pgAnswer(ctx, st, "claim", r)
	default:
		var got store.ClaimResult
		got, err = st.Claim(ctx, r)
		answer = fmt.Sprint(got.Outcome, " ", got.Attempt)
	}
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		return "lost"
	case err != nil:
		return err.Error()
	}
	return answer
}

// The ends of a record, and what a call that found it before its end has written, while
// its commit is slow.
const (
	pgLapsed    = "lease_until = " + pgNow
	pgRenewed   = "revision = revision + 1, lease_until = " + pgInAnHour // or claimed again
	pgCompleted = "revision = revision + 1, state = 2, payload = 'answer', lease_until = " + pgNow + ", replay_until = " + pgInAnHour + ", valid_until = " + pgInAnHour
	pgUnknown   = "revision = revision + 1, at_most_once = 1, reason = 'why', lease_until = 0, valid_until = " + pgInAnHour +
		", owner = (SELECT string_agg(set_byte('x', 0, 255 - get_byte(owner, n)), '' ORDER BY n) FROM generate_series(0, 15) AS n)"
	pgReleased = "revision = revision + 1, lease_until = 0, valid_until = 0, owner = substr(repeat('x', 16)::bytea, 1, 16), fingerprint = sha256('')"
)

// TestPostgresSlowCommits: a call that finds the record before its end, and commits after
// it, has taken place for every call that begins in between. None answers by its snapshot
// that the record has ended: it waits for the first call, or a renewal says busy. Nor
// does a purge delete the record.
func TestPostgresSlowCommits(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	const took, runs, busy = "done", "in-progress 0", "[busy]"
	for mode, replays := range map[pgx.QueryExecMode]int{pgx.QueryExecModeCacheStatement: 200, pgx.QueryExecModeExec: 0} {
		st := f.in(t, mode).Leased(t)
		done := labtest.Completed(t, st, "answer")
		for range replays { // which are common then: a claim looks first
			labtest.WantClaim(t, st, labtest.Rival(done), store.Completed)
		}
		for _, test := range []struct{ end, first, second, want string }{
			{pgEnded, pgRenewed, "complete", took},
			{pgEnded, pgRenewed, "unknown", took},
			{pgEnded, pgRenewed, "release", took},
			{pgEnded, pgRenewed, "renew", busy},
			{pgEnded, pgRenewed, "claim", "claimed 1"},
			{pgEnded, pgRenewed, "rival claims", runs},
			{pgEnded, pgCompleted, "complete", took},
			{pgEnded, pgCompleted, "unknown", "lost"},
			{pgEnded, pgCompleted, "release", took},
			{pgEnded, pgCompleted, "renew", busy},
			{pgEnded, pgCompleted, "rival claims", "completed 0"},
			{pgEnded, pgUnknown, "unknown", took},
			{pgEnded, pgUnknown, "complete", "lost"},
			{pgEnded, pgUnknown, "renew", busy},
			{pgEnded, pgUnknown, "rival claims", "lapsed 0"},
			{pgLapsed, pgRenewed, "rival claims", runs},
			{pgLapsed, pgCompleted, "rival claims", "completed 0"},
			{pgLapsed, pgRenewed, "careful claims", runs},
			{pgLapsed, pgCompleted, "careful claims", "completed 0"},
			{pgLapsed, pgReleased, "careful claims", "claimed 1"},
			{pgLapsed, pgUnknown, "rival claims", "lapsed 0"},
			{pgLapsed, pgReleased, "rival claims", "claimed 1"},
		} {
			r := labtest.Claimed(t, st)
			f.exec(t, f.pgDamage(test.end), r.ID[:])
			holder := f.pgHold(t, f.pgDamage(test.first), r.ID[:])
			answer := make(chan string, 1)
			go func() { answer <- pgAnswer(t.Context(), st, test.second, r) }()
			labtest.Eventually(t, "the second call answers, or waits for the first", func() bool { return len(answer) > 0 || f.pgWaitsFor(t, holder) })
			ctx, cancel := labtest.Call(t)
			if n, err := st.Purge(ctx, 10); n != 0 || err != nil {
				t.Errorf("%d records were purged, %v", n, err)
			}
			cancel()
			labtest.Must(t, holder.Commit(t.Context()))
			if got := <-answer; got != test.want {
				t.Errorf("%v: %s of a record with %s, beside a commit of %s: %s, want %s", mode, test.second, test.end, test.first, got, test.want)
			}
			f.exec(t, "DELETE FROM "+f.records())
		}
	}
}

// TestPostgresTransactionMeetsASlowCommit: so does a completion in the handler's
// transaction, which counts from its own clock: the transaction may be an old one.
func TestPostgresTransactionMeetsASlowCommit(t *testing.T) {
	t.Parallel()
	f, st := pgTxSetup(t)
	r := labtest.Claimed(t, st)
	pgExec(t, pgTx(t, st, r), f.insertion(), 1)
	f.exec(t, f.pgDamage(pgEnded), r.ID[:])
	holder := f.pgHold(t, f.pgDamage(pgRenewed), r.ID[:])
	answer := make(chan error, 1)
	go func() { answer <- labtest.Complete(t, st, r, "answer") }()
	labtest.Eventually(t, "the completion answers, or waits for the renewal", func() bool { return len(answer) > 0 || f.pgWaitsFor(t, holder) })
	from := pgValue[int64](t, f.Pool, "SELECT "+pgLate)
	labtest.Must(t, holder.Commit(t.Context()))
	labtest.Must(t, <-answer)
	if n, replay := f.effects(t), pgValue[int64](t, f.Pool, "SELECT replay_until FROM "+f.records()); n != 1 || replay < from+r.Retention.Microseconds() {
		t.Errorf("%d effects, with a replay until %d from %d on", n, replay, from)
	}
}

// TestPostgresReleaseWaitsForItsClaim: a release does not return nil while a claim of its
// owner may still commit, whether that creates the record, or takes it over.
func TestPostgresReleaseWaitsForItsClaim(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	for what, taken := range map[string]bool{"new": false, "takeover": true} {
		r := labtest.NewClaim()
		statement, args := f.pgInsert("(SELECT $1::bytea AS id) AS s", map[string]string{"owner": "$2", "state": "1", "payload": "NULL::bytea", "lease_until": pgInAnHour}), []any{r.ID[:], r.Owner[:]}
		if taken {
			labtest.WantClaim(t, st, labtest.Rival(r), store.Claimed)
			f.exec(t, f.pgDamage(pgLapsed), r.ID[:])
			statement = f.pgDamage("owner = $2, attempt = 2, " + pgRenewed)
		}
		claim := f.pgHold(t, statement, args...)
		released := make(chan error, 1)
		go func() { released <- st.Release(t.Context(), r.ID, r.Owner) }()
		labtest.Eventually(t, "the release waits", func() bool { return f.pgWaitsFor(t, claim) })
		labtest.Must(t, claim.Commit(t.Context()))
		labtest.Must(t, <-released)
		if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()+" WHERE owner = $1", r.Owner[:]); n != 0 {
			t.Errorf("%s: the record of the released claim is there", what)
		}
	}
}

// TestPostgresBatchDoesNotWaitForARow: a batch waits only shortly for a transaction that
// writes one of its records, so that its calls are sent alone and only one of them waits.
func TestPostgresBatchDoesNotWaitForARow(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(40))
	st := f.Leased(t)
	create, r := f.pgInsert("(SELECT $1::bytea AS id) AS s", nil), labtest.NewClaim()
	insert := f.pgHold(t, create, r.ID[:])
	_, err := f.Pool.Exec(t.Context(), "SELECT * FROM "+f.name("reprise_records_claims_v1")+"(array[$1::bytea], array[$2::bytea], array[$3::bytea], array[60000000], "+
		"array[3600000000], array[0], array[''], array[0]::smallint[], array[''], false)", r.ID[:], r.Owner[:], r.Fingerprint[:])
	var serverErr *pgconn.PgError
	if !errors.As(err, &serverErr) || serverErr.Code != "55P03" {
		t.Errorf("a batch that meets an insert ends with %v, want a lock timeout", err)
	}
	labtest.Must(t, insert.Rollback(t.Context()))

	claims, last := make([]store.ClaimRequest, manyCallers), make(chan error, 1)
	for i := range claims {
		claims[i] = labtest.Claimed(t, st)
	}
	holder := f.pgHold(t, f.pgDamage("fence = fence"), claims[0].ID[:])
	pgTogether(manyCallers, func(i int) {
		if i == 0 {
			go func() { last <- labtest.Complete(t, st, claims[0], "answer") }()
		} else if err := labtest.Complete(t, st, claims[i], "answer"); err != nil {
			t.Errorf("a completion beside one whose row is held: %v", err)
		}
	})
	labtest.Must(t, holder.Rollback(t.Context()))
	labtest.Must(t, <-last)
}

// TestPostgresLeaseCountsFromItsClock: a claim that waits for an insert which is then
// rolled back has the lease, the validity and the purge's index column of the instant at
// which it began, and says how much of its lease is left: what the server honours, and
// not more.
func TestPostgresLeaseCountsFromItsClock(t *testing.T) {
	t.Parallel()
	f, r := pgSetup(t, servers.SharedPostgres(t)), labtest.NewClaim()
	insert := f.pgHold(t, f.pgInsert("(SELECT $1::bytea AS id) AS s", nil), r.ID[:])
	from := pgValue[int64](t, f.Pool, "SELECT "+pgLate)
	answered := make(chan store.ClaimResult, 1)
	go func() { answered <- pgMustNotFail(t, f.Leased(t), r) }()
	labtest.Eventually(t, "the claim waits", func() bool { return f.pgWaitsFor(t, insert) })
	const wait = 50 * time.Millisecond
	to := pgValue[int64](t, f.Pool, "SELECT "+pgLate)
	pgPass(wait)
	labtest.Must(t, insert.Rollback(t.Context()))
	got := <-answered
	if got.Outcome != store.Claimed || got.Remaining > r.Lease-wait || got.Remaining < r.Lease/2 || got.Fence < uint64(from) || got.Fence > uint64(to) {
		t.Errorf("claim answered %+v, of a lease of %v, between %d and %d", got, r.Lease, from, to)
	}
	kept, hour := r.Retention.Microseconds(), time.Hour.Microseconds()
	if !pgValue[bool](t, f.Pool, "SELECT (claimed_at, lease_until, valid_until, due_at) = (fence, fence + $1, fence + $2, fence + $3) FROM "+f.records(),
		r.Lease.Microseconds(), kept, kept+hour) {
		t.Error("the record does not count from its fence")
	}
}
