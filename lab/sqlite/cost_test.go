//go:build cgo

package sqlite

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// TestSQLiteCostOfAKey: one after the other, a new key is two commits, with the effects
// of a handler or without, and a replay is none. And how much of the file and of its log
// a key takes whose response has 256 bytes, its content type and the protocol's overhead.
func TestSQLiteCostOfAKey(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("p", 256+51)
	for name, transactional := range map[string]bool{"leased": false, "transactional": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver{"sqlite3-counted", "?_busy_timeout=5000&_journal_mode=WAL&_synchronous=OFF"} // how often it waits for the disk is the commits
			file := d.newFile(t)
			db := d.open(t, file)
			db.SetMaxOpenConns(2)
			db.SetMaxIdleConns(2)
			bare, err := reprisesqlite.New(db, reprisesqlite.Config{})
			labtest.Must(t, err)
			st := labtest.NewTxStore(bare)
			const mostCommits, mostLog, mostKept = 2, 26_000, 700
			newKey := func() store.ClaimRequest {
				r := labtest.Claimed(t, st)
				if transactional {
					if _, err := reprisesqlite.Tx(st.Bind(t.Context(), r.ID, r.Owner)); err != nil {
						t.Fatal(err)
					}
				}
				labtest.Must(t, labtest.Complete(t, st, r, body))
				return r
			}
			number := func(query string) (n int64) {
				labtest.Must(t, db.QueryRowContext(t.Context(), query).Scan(&n))
				return n
			}
			r := newKey()
			entry, _ := commits.Load(file)
			committed := entry.(*atomic.Int64) //nolint:forcetypeassert // see above
			before := committed.Load()
			newKey()
			if got := committed.Load() - before; got != mostCommits {
				t.Errorf("%d commits of a new key, want %d", got, mostCommits)
			}
			before = committed.Load()
			labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
			if got := committed.Load() - before; got != 0 {
				t.Errorf("%d commits of a replay", got)
			}

			const keys, inLog = 3000, 100
			log := func() int64 {
				info, err := os.Stat(file + "-wal")
				labtest.Must(t, err)
				return info.Size()
			}
			for range keys - inLog {
				newKey()
			}
			labtest.Exec(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
			empty := log()
			for range inLog {
				newKey()
			}
			logged := (log() - empty) / inLog
			kept := (number("PRAGMA page_count") - number("PRAGMA freelist_count")) * number("PRAGMA page_size") / keys
			t.Logf("%d bytes of the log and %d in the file", logged, kept)
			if logged > mostLog || kept > mostKept {
				t.Errorf("%d bytes of the log and %d in the file; want at most %d and %d", logged, kept, mostLog, mostKept)
			}
		})
	}
}
