package sqlite

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// TestPowerFailureKeepsWhatWasAcknowledged: with synchronous=FULL the disk has the log up
// to the end of an operation when that returns. Of what follows there may be any part,
// and anything in its place. So the log is cut behind each operation and between any two,
// with noise in the rest of it, and opened again: every acknowledged record is there, and
// none in part.
func TestPowerFailureKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	rounds := 300
	if testing.Short() {
		rounds = 40
	}
	onDrivers(t, func(t *testing.T, d driver) {
		file := d.newFile(t)
		db := d.open(t, file)
		db.SetMaxOpenConns(1) // which never checkpoints, so that the log has everything
		labtest.Exec(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
		labtest.Exec(t, db, "PRAGMA wal_autocheckpoint = 0")
		before := read(t, file)
		st, err := reprisesqlite.New(db, reprisesqlite.Config{})
		labtest.Must(t, err)
		acknowledged := []int{len(read(t, file+"-wal"))} // sizes of the log
		var claims []store.ClaimRequest
		payload := bytes.Repeat([]byte("answer "), 500)
		for range 20 {
			r := labtest.NewClaim()
			r.Lease = time.Hour // all rounds may take longer than a minute
			claims = append(claims, r)
			labtest.WantClaim(t, st, r, store.Claimed)
			acknowledged = append(acknowledged, len(read(t, file+"-wal")))
			labtest.Must(t, st.Complete(t.Context(), labtest.Completion(r, string(payload))))
			acknowledged = append(acknowledged, len(read(t, file+"-wal")))
		}
		log := read(t, file+"-wal")
		random := rand.New(rand.NewPCG(1, 2)) // a seed reproduces a failure
		for range rounds {
			i := random.IntN(len(acknowledged))
			end := len(log)
			if i+1 < len(acknowledged) {
				end = acknowledged[i+1]
			}
			keep := acknowledged[i] + random.IntN(end-acknowledged[i]+1)
			noise := make([]byte, random.IntN(len(log)-keep+1))
			for j := range noise {
				noise[j] = byte(random.Uint32())
			}
			d.wantRecords(t, before, append(bytes.Clone(log[:keep]), noise...), claims, payload, i, keep == end)
		}
	})
}

// wantRecords opens a file and its log, and demands the records of the first operations:
// a claim and a completion of each. more says that the next one may be there as well.
func (d driver) wantRecords(t *testing.T, file, log []byte, claims []store.ClaimRequest, payload []byte, operations int, more bool) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "after.db")
	labtest.Must(t, os.WriteFile(name, file, 0o600))
	labtest.Must(t, os.WriteFile(name+"-wal", log, 0o600))
	db := d.open(t, name)
	defer db.Close()
	st, err := reprisesqlite.Open(t.Context(), db, reprisesqlite.Config{})
	if err != nil {
		t.Fatalf("after %d operations: %v", operations, err)
	}
	for i, r := range claims {
		want := store.Claimed // it is new
		switch done := operations - 2*i; {
		case done >= 2:
			want = store.Completed
		case done == 1:
			want = store.InProgress
		}
		r.Owner = store.NewOwner()
		got, err := st.Claim(t.Context(), r)
		next := more && (operations == 2*i || operations == 2*i+1)
		if err != nil || got.Outcome != want && !next || want == store.Completed && !bytes.Equal(got.Payload, payload) {
			t.Fatalf("after %d operations, operation %d of the log is answered %v, %v; want %v", operations, i, got.Outcome, err, want)
		}
	}
}

// TestFullDiskRefusesAndForgetsNothing: a disk without room ends a claim with ErrFull,
// and nothing of it is there; replays go on, and what was claimed before is completed
// once there is room.
func TestFullDiskRefusesAndForgetsNothing(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(t *testing.T, d driver) {
		disk := servers.NewDisk(t, 2<<20, false)
		file := filepath.Join(disk.Dir(), "records.db")
		db := d.open(t, file)
		t.Cleanup(func() { _ = db.Close() }) // before the disk is gone
		labtest.Must(t, reprisesqlite.Migrate(t.Context(), db, reprisesqlite.Config{}))
		st, err := reprisesqlite.Open(t.Context(), db, reprisesqlite.Config{})
		labtest.Must(t, err)
		done, running := labtest.NewClaim(), labtest.NewClaim()
		for _, r := range []store.ClaimRequest{done, running} {
			labtest.WantClaim(t, st, r, store.Claimed)
		}
		labtest.Must(t, st.Complete(t.Context(), labtest.Completion(done, "answer")))
		disk.Fill(t)
		var refused store.ClaimRequest
		large := bytes.Repeat([]byte("x"), 1<<20)
		if err := st.Complete(t.Context(), labtest.Completion(running, string(large))); !isFull(err) {
			t.Errorf("completed on a full disk: %v", err)
		}
		for range 1000 { // the log may have room for some
			refused = labtest.NewClaim()
			if _, err = st.Claim(t.Context(), refused); err != nil {
				break
			}
		}
		if !isFull(err) {
			t.Fatalf("claimed on a full disk: %v", err)
		}
		done.Owner = store.NewOwner()
		if got, err := st.Claim(t.Context(), done); err != nil || string(got.Payload) != "answer" {
			t.Errorf("replayed %q, %v", got.Payload, err)
		}
		disk.Free(t)
		if got, err := st.Claim(t.Context(), refused); err != nil || got.Outcome != store.Claimed || got.Attempt != 1 {
			t.Errorf("claimed once there is room: %+v, %v", got, err)
		}
		if err := st.Complete(t.Context(), labtest.Completion(running, "late")); err != nil {
			t.Errorf("completed once there is room: %v", err)
		}
	})
}

func read(tb testing.TB, file string) []byte {
	tb.Helper()
	b, err := os.ReadFile(file)
	labtest.Must(tb, err)
	return b
}

func isFull(err error) bool { return errors.Is(err, store.ErrFull) }
