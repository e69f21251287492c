//go:build cgo

package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// commits counts the commits of the driver sqlite3-counted, by the name of the file.
var commits sync.Map

func init() {
	sql.Register("sqlite3-counted", &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		n, _ := commits.LoadOrStore(c.GetFilename("main"), new(atomic.Int64))
		c.RegisterCommitHook(func() int { n.(*atomic.Int64).Add(1); return 0 }) //nolint:forcetypeassert // see above
		return nil
	}})
}

// TestWritesThatQueueShareACommit: claims that arrive while another one waits for the
// file are granted by one commit.
func TestWritesThatQueueShareACommit(t *testing.T) {
	t.Parallel()
	counted := driver{"sqlite3-counted", drivers[1].settings}
	file := drivers[1].newFile(t)
	db := counted.open(t, file)
	st, err := reprisesqlite.New(db, reprisesqlite.Config{})
	labtest.Must(t, err)
	labtest.Claimed(t, st)
	entry, _ := commits.Load(file)
	n := entry.(*atomic.Int64) //nolint:forcetypeassert // see above

	const claims = 50
	other := drivers[1].open(t, file)
	writer, err := other.BeginTx(t.Context(), nil)
	labtest.Must(t, err)
	labtest.Exec(t, writer, "UPDATE reprise_records SET revision = revision WHERE 0")
	before := n.Load()
	var granted sync.WaitGroup
	for range claims {
		granted.Go(func() {
			if got, err := st.Claim(context.WithoutCancel(t.Context()), labtest.NewClaim()); err != nil || got.Outcome != store.Claimed {
				t.Errorf("%v, %v", got.Outcome, err)
			}
		})
	}
	queued := func() (n int64) {
		for _, u := range st.Usage() {
			n += u.Waiting
		}
		return n
	}
	for deadline := time.Now().Add(4 * time.Second); queued() < claims-1 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) //nolint:forbidigo // polls
	}
	labtest.Must(t, writer.Rollback())
	granted.Wait()
	if together := n.Load() - before; together < 1 || together > 2 {
		t.Errorf("%d commits of %d claims, want 2 at most: of the first, and of those that queued meanwhile", together, claims)
	}
}
