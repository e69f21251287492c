package postgres

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestPostgresDeletesPayloads (R37): a number of a card in a response is found in the
// table and in the files of the server while it is replayed. After its retention, long
// before the end of its horizon, a purge has emptied the column, and a VACUUM FULL, a
// checkpoint and the deletion of old segments of the log leave none of it in any file of
// the server. One number is stored in the row, the other in the TOAST table.
func TestPostgresDeletesPayloads(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t, "autovacuum=off", "wal_level=minimal", "max_wal_senders=0", "full_page_writes=on", "wal_recycle=off", "min_wal_size=32MB")
	f := pgSetup(t, server, labtest.MaxConns(4))
	st := f.Leased(t)
	f.exec(t, "ALTER TABLE "+f.records()+" ALTER payload SET STORAGE EXTERNAL") // uncompressed, so that it can be found
	short, long := labtest.NewClaim(), labtest.NewClaim()
	const inRow, inToast = "4012888888881881", "4111111111111111"
	for payload, r := range map[string]*store.ClaimRequest{"card=" + inRow: &short, fmt.Sprintf("%4000d card=%s %4000d", 0, inToast, 0): &long} {
		r.Horizon = time.Hour
		labtest.WantClaim(t, st, *r, store.Claimed)
		labtest.Must(t, labtest.Complete(t, st, *r, payload))
	}

	data := pgValue[string](t, f.Pool, "SHOW data_directory")
	inTable := func() int {
		return pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()+" AS r WHERE position('"+inRow+"'::bytea IN payload) > 0 OR position('"+inToast+"'::bytea IN payload) > 0")
	}
	f.exec(t, "CHECKPOINT")
	for _, number := range []string{inRow, inToast} {
		if files := pgFilesWith(t, data, number); len(files) == 0 {
			t.Fatalf("%s is in no file below %s while it is replayed", number, data)
		}
	}
	if n := inTable(); n != 2 {
		t.Fatalf("%d rows have a number while it is replayed, want 2", n)
	}

	f.exec(t, "UPDATE "+f.records()+" SET due_at = due_at - 3660000000, lease_until = lease_until - 3660000000, "+
		"replay_until = replay_until - 3660000000, valid_until = valid_until - 3660000000") // their replay has ended, and their horizon has not
	if n, err := st.Purge(t.Context(), 100); err != nil || n != 2 {
		t.Fatalf("the purge changed %d records, %v; want 2", n, err)
	}
	if n := inTable(); n != 0 {
		t.Errorf("%d rows have a number after the purge", n)
	}
	labtest.WantClaim(t, st, labtest.Rival(short), store.Expired)
	labtest.WantClaim(t, st, labtest.Rival(long), store.Expired)

	f.exec(t, "VACUUM FULL "+f.records())
	for range 2 { // the log before the checkpoint before the last one is of no use any more
		f.exec(t, "SELECT pg_switch_wal()")
		f.exec(t, "CHECKPOINT")
	}
	for _, number := range []string{inRow, inToast} {
		if files := pgFilesWith(t, data, number); len(files) > 0 {
			t.Errorf("%s is in %v after its retention", number, files)
		}
	}
	labtest.WantClaim(t, st, labtest.Rival(short), store.Expired)
}

// pgFilesWith returns the files below dir that contain text.
func pgFilesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "grep", "-rlaF", "--", text, dir).Output()
	if len(out) == 0 && err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
