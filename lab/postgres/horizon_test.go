package postgres

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// replayed moves the instants of completed records into the past, so that the replay of
// their payloads has ended and their horizon has not.
func (f *pgFixture) replayed(t *testing.T, ids ...store.ID) {
	t.Helper()
	for _, id := range ids {
		f.exec(t, f.pgDamage("due_at = due_at - 3660000000, lease_until = lease_until - 3660000000, "+
			"replay_until = replay_until - 3660000000, valid_until = valid_until - 3660000000"), id[:])
	}
}

// pgHorizonClaim returns a claim whose payload is replayed for an hour and remembered for
// another.
func pgHorizonClaim() store.ClaimRequest {
	r := pgClaim()
	r.Label, r.AtMostOnce, r.Horizon = "payments", true, time.Hour
	return r
}

// pgKept claims and completes r.
func pgKept(t *testing.T, st store.Store, r store.ClaimRequest, payload string) {
	t.Helper()
	pgMustClaim(t, st, r, store.Claimed)
	pgWant(t, "complete", pgComplete(t, st, r, payload), nil)
}

// TestPostgresPurgeEmptiesPayloads: the purge deletes the payloads whose retention has
// ended, within its limit and together with the records that are over, and counts each
// of them once. A record without a payload stays readable, for its owner too, until it
// is over and deleted. So do records that a prepared statement, an unprepared one and a
// transaction completed.
func TestPostgresPurgeEmptiesPayloads(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	unprepared := f.in(t, pgx.QueryExecModeExec)
	var ids []store.ID
	first := pgHorizonClaim()
	for i, via := range []store.Store{st, st, unprepared.Leased(t)} {
		r := first
		if i > 0 {
			r = pgHorizonClaim()
		}
		pgKept(t, via, r, pgBody)
		ids = append(ids, r.ID)
	}
	kept, brief, over := pgHorizonClaim(), pgClaim(), pgClaim()
	pgKept(t, st, kept, pgBody)
	pgKept(t, st, brief, pgBody)
	pgKept(t, st, over, pgBody)
	f.replayed(t, ids...)
	f.exec(t, f.pgDamage("due_at = 0, valid_until = 0"), over.ID[:])

	purge := func(limit, want int) {
		t.Helper()
		if n, err := st.Purge(t.Context(), limit); err != nil || n != want {
			t.Errorf("a purge of up to %d changed %d records, %v; want %d", limit, n, err, want)
		}
	}
	expired := func() {
		t.Helper()
		for _, via := range []store.Store{st, unprepared.Leased(t)} {
			for _, id := range ids {
				r := pgRival(first)
				r.ID = id
				if id != first.ID {
					pgMustClaim(t, via, r, store.Mismatch)
					continue
				}
				if got := pgMustClaim(t, via, r, store.Expired); got.Payload != nil {
					t.Errorf("an expired record is answered with %q", got.Payload)
				}
			}
		}
		record, err := st.Inspect(t.Context(), first.ID)
		if err != nil || record.State != store.StateExpired || record.Policy != first.Policy || record.Size != 0 || record.Payload != nil {
			t.Errorf("inspected %+v, %v", record, err)
		}
	}
	payloads := func() int {
		return pgValue[int](t, f.Pool, "SELECT count(payload) FROM "+f.records())
	}

	expired()
	purge(2, 2)
	purge(100, 2)
	purge(100, 0)
	if n := payloads(); n != 2 { // of kept and brief
		t.Errorf("%d payloads are left, want 2", n)
	}
	if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.records()+" WHERE due_at <= "+pgNow); n != 0 {
		t.Errorf("every purge reads %d records until their horizon ends", n)
	}
	expired()
	pgWant(t, "repeated completion", pgComplete(t, st, first, pgBody), nil)
	statuses, err := st.Renew(t.Context(), []store.RenewRequest{{ID: first.ID, Owner: first.Owner, Lease: time.Minute}})
	if err != nil || len(statuses) != 1 || statuses[0] != store.RenewCompleted {
		t.Errorf("a renewal is answered %v, %v", statuses, err)
	}
	expired()
	for _, r := range []store.ClaimRequest{kept, brief} {
		if got := pgMustClaim(t, st, pgRival(r), store.Completed); string(got.Payload) != pgBody {
			t.Errorf("replayed %q", got.Payload)
		}
	}

	f.replayed(t, ids...) // and with that their horizon ends
	pgMustClaim(t, st, pgRival(first), store.Claimed)
	purge(100, 2)
}

// TestPostgresNoTakeoverOfAtMostOnce: a lapsed record is judged by its own policy, by
// both stores, however the claim is sent. A takeover writes the policy of its claim.
func TestPostgresNoTakeoverOfAtMostOnce(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	unprepared := f.in(t, pgx.QueryExecModeExec)
	for name, st := range map[string]store.Store{"leased": f.Leased(t), "unprepared": unprepared.Leased(t)} {
		strict, lenient := pgHorizonClaim(), pgClaim()
		for _, r := range []store.ClaimRequest{strict, lenient} {
			pgMustClaim(t, f.Leased(t), r, store.Claimed)
			f.exec(t, f.pgDamage("lease_until = "+pgNow), r.ID[:])
		}
		retry := pgRival(strict)
		retry.Policy = lenient.Policy
		pgMustClaim(t, st, retry, store.Lapsed)
		retry = pgRival(lenient)
		retry.Policy = strict.Policy
		pgMustClaim(t, st, retry, store.Claimed)
		pgWant(t, "complete", pgComplete(t, st, retry, pgBody), nil)
		if record, err := f.Leased(t).Inspect(t.Context(), retry.ID); err != nil || record.Policy != strict.Policy || record.Attempt != 2 {
			t.Errorf("%s: after a takeover the record is %+v, %v", name, record, err)
		}
	}
}

// TestPostgresBatchAnswersExpired: claims that are sent together get the same answer, of
// a payload that the purge has deleted and of one that it has not.
func TestPostgresBatchAnswersExpired(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	present, emptied := pgHorizonClaim(), pgHorizonClaim()
	pgKept(t, st, present, pgBody)
	pgKept(t, st, emptied, pgBody)
	f.replayed(t, present.ID, emptied.ID)
	f.exec(t, f.pgDamage("payload = NULL"), emptied.ID[:])
	for _, look := range []bool{true, false} {
		rows, err := f.Pool.Query(t.Context(), "SELECT state, size, payload FROM "+f.name("reprise_records_claims_v1")+
			"($1, $1, $1, array[1, 1], array[3600000000, 3600000000], array[0, 0], array['', ''], array[0::smallint, 0::smallint], array['', ''], $2)",
			[][]byte{present.ID[:], emptied.ID[:]}, look)
		pgWant(t, "claims", err, nil)
		n := 0
		var (
			state   int16
			size    *int
			payload []byte
		)
		_, err = pgx.ForEachRow(rows, []any{&state, &size, &payload}, func() error {
			n++
			if state != 2 || size != nil || payload != nil {
				t.Errorf("look %t: a record of state %d, size %v and payload %q", look, state, size, payload)
			}
			return nil
		})
		if err != nil || n != 2 {
			t.Errorf("look %t: %d records, %v", look, n, err)
		}
	}
}

// TestPostgresCompletionWithoutHorizonStaysHeapOnly: only the completion of a record with
// a horizon changes the indexed column, which tells the purge when the replay ends.
func TestPostgresCompletionWithoutHorizonStaysHeapOnly(t *testing.T) {
	t.Parallel()
	f := pgSetup(t, servers.SharedPostgres(t))
	st := f.Leased(t)
	for _, horizon := range []time.Duration{0, time.Hour} {
		r := pgClaim()
		r.Horizon = horizon
		pgMustClaim(t, st, r, store.Claimed)
		due := func() int64 {
			return pgValue[int64](t, f.Pool, "SELECT due_at FROM "+f.records()+" WHERE id = $1", r.ID[:])
		}
		before := due()
		pgWant(t, "complete", pgComplete(t, st, r, pgBody), nil)
		if moved := due() != before; moved != (horizon > 0) {
			t.Errorf("with a horizon of %v the completion moved the indexed column: %t", horizon, moved)
		}
	}
}

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
	short, long := pgHorizonClaim(), pgHorizonClaim()
	const inRow, inToast = "4012888888881881", "4111111111111111"
	pgKept(t, st, short, "card="+inRow)
	pgKept(t, st, long, fmt.Sprintf("%4000d card=%s %4000d", 0, inToast, 0))

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

	f.replayed(t, short.ID, long.ID)
	if n, err := st.Purge(t.Context(), 100); err != nil || n != 2 {
		t.Fatalf("the purge changed %d records, %v; want 2", n, err)
	}
	if n := inTable(); n != 0 {
		t.Errorf("%d rows have a number after the purge", n)
	}
	pgMustClaim(t, st, pgRival(short), store.Expired)
	pgMustClaim(t, st, pgRival(long), store.Expired)

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
	pgMustClaim(t, st, pgRival(short), store.Expired)
}

// pgFilesWith returns the files below dir that contain text.
func pgFilesWith(t *testing.T, dir, text string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a file of the test's own server
		if os.IsNotExist(err) {
			return nil // the server deleted it
		}
		if bytes.Contains(content, []byte(text)) {
			name, _ := filepath.Rel(dir, path)
			list = append(list, name)
		}
		return err
	})
	pgWant(t, "reading the files of the server", err, nil)
	return list
}
