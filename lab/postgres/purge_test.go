package postgres

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresPurgeUnderOldSnapshot: while an old transaction keeps deleted entries in
// the index, a purge reads each of them once, and not with every statement.
func TestPostgresPurgeUnderOldSnapshot(t *testing.T) {
	t.Parallel()
	const records, batch = 20_000, 500
	f := pgSetup(t, servers.SharedPostgres(t))
	store := f.Leased(t)
	f.exec(t, "ALTER TABLE "+f.records()+" SET (autovacuum_enabled = off)")
	f.exec(t, f.pgInsert("(SELECT sha256(n::text::bytea) AS id, n FROM generate_series(1, $1::integer) AS n) AS s", map[string]string{
		"valid_until": pgNow + " - 24 * " + pgHour, "due_at": pgNow + " - 24 * " + pgHour + " + n * 1000",
	}), records)
	f.exec(t, "VACUUM ANALYZE "+f.records())

	old, err := f.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	labtest.Must(t, err)
	defer func() { _ = old.Rollback(context.WithoutCancel(t.Context())) }()
	pgExec(t, old, "SELECT count(*) FROM "+f.records())
	reads := func() int {
		f.Pool.Reset() // a session reports its reads when it ends
		return pgValue[int](t, f.Pool, `SELECT pg_stat_force_next_flush()::text::integer FROM (SELECT 1) AS x WHERE false
			UNION ALL SELECT idx_tup_read::integer FROM pg_stat_user_indexes WHERE indexrelid = $1::regclass`, f.name("reprise_records_due_at_idx"))
	}
	before := reads()
	deleted := 0
	for {
		n, err := store.Purge(t.Context(), batch)
		labtest.Must(t, err)
		deleted += n
		if n < batch {
			break
		}
	}
	if deleted != records {
		t.Errorf("%d records deleted, want %d", deleted, records)
	}
	labtest.Eventually(t, "the statistics are there", func() bool { return reads()-before >= records })
	if read := reads() - before; read > 3*records {
		t.Errorf("a purge of %d records in batches of %d read %d index entries, want about as many as records", records, batch, read)
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

func (l *pgLog) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}
