package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"

	"github.com/reprise-go/reprise/servers"
)

// TestPostgresPurgeAgainstReclaims: while records past their retention are purged by four
// at once, their keys are claimed again; no such claim loses its record.
func TestPostgresPurgeAgainstReclaims(t *testing.T) {
	t.Parallel()
	const workers = 4
	rounds := labtest.Times(25, 5)
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(2*workers))
	st := f.Leased(t)
	ctx, stop := context.WithCancel(t.Context())
	var (
		purgers, claimers sync.WaitGroup
		purged, reclaimed atomic.Int64
	)
	for range workers {
		purgers.Go(func() {
			for ctx.Err() == nil {
				deleted, err := st.Purge(ctx, 5)
				if err != nil && ctx.Err() == nil {
					t.Errorf("purge: %v", err)
				}
				purged.Add(int64(deleted))
			}
		})
	}
	for range workers {
		claimers.Go(func() {
			keys := make([]store.ClaimRequest, 10)
			for i := range keys {
				keys[i] = pgClaim()
			}
			for range rounds {
				for _, key := range keys {
					r := pgRival(key)
					r.Retention, r.Lease = time.Millisecond, time.Millisecond
					for patiently(t, st, r).Outcome != store.Claimed {
						r.Owner = store.NewOwner()
					}
					// Its record is past both by now, or nearly; a purge may be about to
					// delete it. Who claims now keeps it.
					r = pgRival(key)
					for patiently(t, st, r).Attempt != 1 {
						r.Owner = store.NewOwner()
						r.Takeover = false
					}
					kept := pgMustClaim(t, st, r, store.Claimed)
					if err := pgComplete(t, st, r, "answer"); err != nil {
						t.Errorf("complete of attempt %d: %v", kept.Attempt, err)
					}
					pgMustClaim(t, st, pgRival(key), store.Completed)
					reclaimed.Add(1)
					f.exec(t, f.pgDamage("valid_until = "+pgNow+", due_at = "+pgNow), key.ID[:])
				}
			}
		})
	}
	claimers.Wait()
	stop()
	purgers.Wait()
	if purged.Load() == 0 {
		t.Error("nothing was purged")
	}
	t.Logf("%d records claimed again, %d purged, 0 lost", reclaimed.Load(), purged.Load())
}

// patiently repeats a claim that is busy, as the engine does: a purge may delete the
// record between the statements of each try.
func patiently(tb testing.TB, st store.Store, r store.ClaimRequest) store.ClaimResult {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		got, err := st.Claim(tb.Context(), r)
		if err == nil {
			return got
		}
		if !errors.Is(err, store.ErrBusy) || time.Now().After(deadline) {
			tb.Fatalf("claim: %v", err)
		}
	}
}

// TestPostgresPurgeUnderOldSnapshot: while an old transaction keeps deleted entries in
// the index, a purge reads each of them once, and not with every statement.
func TestPostgresPurgeUnderOldSnapshot(t *testing.T) {
	t.Parallel()
	const records, batch = 20_000, 500
	f := pgSetup(t, servers.StartPostgres(t))
	store := f.Leased(t)
	f.exec(t, "ALTER TABLE "+f.records()+" SET (autovacuum_enabled = off)")
	f.exec(t, f.pgInsert("(SELECT sha256(n::text::bytea) AS id, n FROM generate_series(1, $1::integer) AS n) AS s", map[string]string{
		"valid_until": pgNow + " - 24 * " + pgHour, "due_at": pgNow + " - 24 * " + pgHour + " + n * 1000",
	}), records)
	f.exec(t, "VACUUM ANALYZE "+f.records())

	old, err := f.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	pgWant(t, "begin", err, nil)
	defer func() { _ = old.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := old.Exec(t.Context(), "SELECT count(*) FROM "+f.records()); err != nil {
		t.Fatal(err)
	}
	reads := func() int {
		f.Pool.Reset() // a session reports its reads when it ends
		return pgValue[int](t, f.Pool, `SELECT pg_stat_force_next_flush()::text::integer FROM (SELECT 1) AS x WHERE false
			UNION ALL SELECT idx_tup_read::integer FROM pg_stat_user_indexes WHERE indexrelid = $1::regclass`, f.name("reprise_records_due_at"))
	}
	before := reads()
	deleted := 0
	for {
		n, err := store.Purge(t.Context(), batch)
		pgWant(t, "purge", err, nil)
		deleted += n
		if n < batch {
			break
		}
	}
	if deleted != records {
		t.Errorf("%d records deleted, want %d", deleted, records)
	}
	pgEventually(t, "the statistics are there", func() bool { return reads()-before >= records })
	if read := reads() - before; read > 3*records {
		t.Errorf("a purge of %d records in batches of %d read %d index entries, want about as many as records", records, batch, read)
	} else {
		t.Logf("a purge of %d records read %d index entries", records, read)
	}
}

// TestPostgresPurgeKeepsVisibleRecords: a record that the purge finds in its index stays
// while it is visible: an attempt whose lease lives, and a lapsed one within its
// retention.
func TestPostgresPurgeKeepsVisibleRecords(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t), labtest.MaxConns(2))
	st := f.Leased(t)
	const live, over = pgInAnHour, pgNow + " - 1000000"
	for _, r := range []struct{ lease, valid, payload string }{
		{live, over, "NULL"}, {over, live, "NULL"}, // seen
		{over, over, "NULL"}, {over, over, "''"}, {live, over, "''"}, // the lease of a response says when it was completed
	} {
		key := pgClaim()
		pgMustClaim(t, st, key, store.Claimed)
		f.exec(t, f.pgDamage("due_at = "+over+", lease_until = "+r.lease+", valid_until = "+r.valid+", payload = "+r.payload+
			", state = CASE WHEN "+r.payload+"::bytea IS NULL THEN 1 ELSE 2 END"), key.ID[:])
	}
	if n, err := st.Purge(t.Context(), 1); err != nil || n != 1 {
		t.Errorf("a purge of one record deleted %d, %v", n, err)
	}
	if n, err := st.Purge(t.Context(), 100); err != nil || n != 2 {
		t.Errorf("%d records were purged after the first, %v; want 2", n, err)
	}
}

// pgLog is a log that a test looks at while it is written.
type pgLog struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *pgLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *pgLog) contains(text string) bool { return l.count(text) > 0 }

func (l *pgLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}
