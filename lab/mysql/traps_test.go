package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// repeatable makes REPEATABLE READ the default of sessions, as servers do.
const repeatable = "?tx_isolation='REPEATABLE-READ'"

// TestPurgeNeitherWaitsNorHoldsUp: it skips a record that another transaction has
// locked, in a table that the planner would rather read whole too, and claims go on while
// it runs.
func TestPurgeNeitherWaitsNorHoldsUp(t *testing.T) {
	t.Parallel()
	for _, ended := range []int{3, 500} {
		raw := newDatabase(t) + repeatable
		leased := mysqlserver.Store(t, raw)
		var last store.ClaimRequest
		for range ended {
			last = labtest.NewClaim()
			last.Lease, last.Policy = time.Millisecond, store.Policy{Retention: time.Millisecond}
			labtest.WantClaim(t, leased, last, store.Claimed)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // the records end
		writing(t, raw, "SELECT id FROM reprise_records WHERE id = ? FOR UPDATE", last.ID[:])
		var claims sync.WaitGroup
		for range 8 * ended / 10 {
			claims.Go(func() {
				if got, err := leased.Claim(t.Context(), labtest.NewClaim()); err != nil || got.Outcome != store.Claimed {
					t.Errorf("%v, %v", got.Outcome, err)
				}
			})
		}
		purged := 0
		for range 50 {
			n, err := leased.Purge(t.Context(), 100)
			labtest.Must(t, err)
			purged += n
		}
		claims.Wait()
		if purged != ended-1 {
			t.Errorf("%d records purged, want %d: all but the locked one", purged, ended-1)
		}
	}
}

// TestRowLockedByAnotherIsALostRace: a claim does not outwait its caller, and a duplicate
// does not wait at all.
func TestRowLockedByAnotherIsALostRace(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	raw := database + "?innodb_lock_wait_timeout=1"
	st := mysqlserver.Store(t, raw)
	r := labtest.Claimed(t, st)
	tx := writing(t, raw, "UPDATE reprise_records SET label = 'locked' WHERE id = ?", r.ID[:])
	patient, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a lock is waited for longer
	defer cancel()
	if got, err := mysqlserver.Store(t, database).Claim(patient, labtest.Rival(r)); err != nil || got.Outcome != store.InProgress {
		t.Errorf("%v, %v; want InProgress", got.Outcome, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cut := later(t, raw, func() error { return st.Release(ctx, r.ID, r.Owner) })
	cancel()
	labtest.Want(t, "a release that its context cut short", <-cut, store.ErrUnknown)
	released := make(chan error)
	go func() { released <- st.Release(t.Context(), r.ID, r.Owner) }()
	time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // longer than a lock wait: 1205
	labtest.Must(t, tx.Rollback())
	labtest.Must(t, <-released)
	labtest.WantClaim(t, st, labtest.Rival(r), store.Claimed)
}

// TestSessionsWithoutTheServersTimeAreRefused: a fixed timestamp would end no lease, or
// all of them; and without autocommit a claim would be lost with its session.
func TestSessionsWithoutTheServersTimeAreRefused(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	for _, params := range []string{"?timestamp=1000000000", "?autocommit=0", "?tx_isolation='READ-UNCOMMITTED'"} {
		if got, err := mysqlserver.Store(t, raw+params).Claim(t.Context(), labtest.NewClaim()); !errors.Is(err, store.ErrMisconfigured) {
			t.Errorf("%s: %v, %v; want ErrMisconfigured", params, got.Outcome, err)
		}
		_, err := reprisemysql.Open(t.Context(), mysqlserver.Pool(t, raw+params, 0), reprisemysql.Config{})
		labtest.Want(t, "Open", err, store.ErrMisconfigured)
	}
}

// TestOpenTransactionOfThePoolIsRefused: one that the application left on a connection,
// with which a claim would be rolled back after its handler has run.
func TestOpenTransactionOfThePoolIsRefused(t *testing.T) {
	t.Parallel()
	raw := newDatabase(t)
	db := mysqlserver.Pool(t, raw, 3)
	for _, statement := range []string{"BEGIN", "INSERT INTO effects (name) VALUES ('left')"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil { // on the one connection that is open
			t.Fatal(err)
		}
	}
	st := newStore(t, db, reprisemysql.Config{})
	if got, err := st.Claim(t.Context(), labtest.NewClaim()); !errors.Is(err, store.ErrMisconfigured) {
		t.Errorf("%v, %v; want ErrMisconfigured", got.Outcome, err)
	}
}

// TestPayloadLargerThanAPacketIsFull: the failure is definite, and the attempt can be
// completed with a smaller one.
func TestPayloadLargerThanAPacketIsFull(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t, "max-allowed-packet=1M")
	for _, params := range []string{"", "?interpolateParams=false", "?maxAllowedPacket=0"} {
		raw := withEffects(t, server) + params
		large := make([]byte, 3<<20)
		st, r := mysqlserver.Store(t, raw), labtest.NewClaim()
		labtest.WantClaim(t, st, r, store.Claimed)
		labtest.Want(t, params, st.Complete(t.Context(), labtest.Completion(r, string(large))), store.ErrFull)
		if err := st.Complete(t.Context(), labtest.Completion(r, "small")); err != nil {
			t.Errorf("%s: %v", params, err)
		}
		a := begin(t, labtest.NewTxStore(st), labtest.NewClaim())
		labtest.Want(t, params+"with effects", a.Complete(t.Context(), labtest.Completion(a.ClaimRequest, string(large))), store.ErrNotApplied)
	}
}

// TestReadOnlyServerIsLeft: as the primary of a failover that is reached by old
// connections. Nothing is granted there, and its connections do not go back to the pool.
func TestReadOnlyServerIsLeft(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t)
	db := mysqlserver.Pool(t, asService(t, withEffects(t, server)), 0)
	st := newStore(t, db, reprisemysql.Config{})
	r := labtest.Claimed(t, st)
	mysqlserver.Exec(t, server.URL(), "SET GLOBAL read_only = 1")
	if got, err := st.Claim(t.Context(), labtest.NewClaim()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v, %v; want ErrUnavailable", got.Outcome, err)
	}
	if n := db.Stats().OpenConnections; n != 0 {
		t.Errorf("%d connections are open", n)
	}
	labtest.Want(t, "complete", st.Complete(t.Context(), labtest.Completion(r, "")), store.ErrUnavailable)
	_, err := reprisemysql.Open(t.Context(), db, reprisemysql.Config{})
	labtest.Want(t, "Open", err, store.ErrMisconfigured)
	mysqlserver.Exec(t, server.URL(), "SET GLOBAL read_only = 0")
	labtest.Must(t, st.Complete(t.Context(), labtest.Completion(r, "")))
}

// TestFullServerIsFull: and a completed record stays.
func TestFullServerIsFull(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t)
	raw := mysqlserver.New(t, server)
	st := mysqlserver.Store(t, raw)
	done := labtest.Claimed(t, st)
	labtest.Must(t, st.Complete(t.Context(), labtest.Completion(done, "answer")))
	// A table in memory is full after some records, by the same error as that on a disk.
	mysqlserver.Exec(t, raw, "ALTER TABLE reprise_records DROP COLUMN payload")
	mysqlserver.Exec(t, raw, "ALTER TABLE reprise_records ADD COLUMN payload VARBINARY(60), MAX_ROWS = 10, ENGINE = MEMORY")
	if _, err := reprisemysql.Open(t.Context(), mysqlserver.Pool(t, raw, 0), reprisemysql.Config{}); !errors.Is(err, store.ErrMisconfigured) || !strings.Contains(fmt.Sprint(err), "table-engine") {
		t.Errorf("Open over a table in memory: %v, want ErrMisconfigured", err)
	}
	mysqlserver.Exec(t, server.URL(), "SET GLOBAL max_heap_table_size = 16384")
	mysqlserver.Exec(t, raw, "SET STATEMENT max_heap_table_size = 16384 FOR ALTER TABLE reprise_records ENGINE = MEMORY")
	var err error
	for n := 0; n < 5000 && err == nil; n++ {
		_, err = st.Claim(t.Context(), labtest.NewClaim())
	}
	if !errors.Is(err, store.ErrFull) {
		t.Errorf("%v, want ErrFull", err)
	}
}

// TestStatementsInTheBinlogAreRefused: a replica would judge each by its own clock, and
// leave completions out that it executes late.
func TestStatementsInTheBinlogAreRefused(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t, "log-bin", "server-id=1")
	raw := mysqlserver.New(t, server)
	for format, want := range map[string]error{"ROW": nil, "MIXED": nil, "STATEMENT": store.ErrMisconfigured} {
		db := mysqlserver.Pool(t, raw+"?binlog_format="+format, 0)
		if _, err := reprisemysql.Open(t.Context(), db, reprisemysql.Config{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", format, err, want)
		}
	}
}

// TestPurgeIsBoundedByBytes: no transaction of the binary log has more, even if all rows
// are large, and one that is larger is purged alone. Every record goes in one call.
func TestPurgeIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t, "log-bin", "server-id=1", "binlog-format=ROW", "max-allowed-packet=64M")
	raw := mysqlserver.New(t, server)
	st := mysqlserver.Store(t, raw)
	const large = 40
	var middle store.ClaimRequest
	for n := range large + 1 {
		if r := labtest.Completed(t, st, "answer"); n == large/2 {
			middle = r
		}
	}
	mysqlserver.Exec(t, raw, "UPDATE reprise_records SET valid_until = 0, due_at = revision, payload = REPEAT('x', IF(id = ?, 20, 1) << 20)", middle.ID[:])
	mysqlserver.Exec(t, server.URL(), "SET GLOBAL max_binlog_cache_size = 22020096") // which fails a transaction of more than 21 MiB
	if n, err := mysqlserver.Store(t, raw).Purge(t.Context(), 500); err != nil || n != large+1 {
		t.Errorf("purged %d, %v; want %d", n, err, large+1)
	}
}
