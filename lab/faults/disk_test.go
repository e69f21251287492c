package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// The disk of the server is full for a while. New operations are refused then, no record
// is lost, and operations that ran are completed when there is space again.
func TestDiskOfTheServerIsFull(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (store.Store, *servers.Disk){
		"redis": func(t *testing.T) (store.Store, *servers.Disk) {
			disk := servers.NewDisk(t, 4<<20, false)
			s := servers.Redis.Start(t, "appendonly=yes", "appendfsync=everysec", "dir="+disk.Dir(), "auto-aof-rewrite-percentage=0")
			return labtest.RedisStore(t, labtest.RedisClient(t, s.Addr()), repriseredis.Config{}), disk
		},
		"postgres": func(t *testing.T) (store.Store, *servers.Disk) {
			disk := servers.NewDisk(t, 8<<20, true)
			s := servers.StartPostgres(t)
			for _, sql := range []string{"CREATE TABLESPACE small LOCATION '" + disk.Dir() + "'", "ALTER DATABASE postgres SET default_tablespace = small"} {
				_, err := s.Exec(t.Context(), sql)
				labtest.Must(t, err)
			}
			return labtest.SetupPostgres(t, s).Leased(t), disk
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, disk := open(t)
			done, running := newClaim(), newClaim()
			labtest.WantClaim(t, st, done, store.Claimed)
			labtest.Must(t, labtest.Complete(t, st, done, "answer"))
			labtest.WantClaim(t, st, running, store.Claimed)

			disk.Fill(t)
			answer := strings.Repeat("a", 4000) // soon needs space that is not there
			refused, finished := 0, 0
			var reason error
			deadline := time.Now().Add(patience)
			for refused < 20 {
				r := newClaim()
				got, err := st.Claim(t.Context(), r)
				if err == nil && got.Outcome == store.Claimed {
					err = labtest.Complete(t, st, r, answer)
				}
				if err == nil {
					finished++
				} else {
					refused, reason = refused+1, err
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d operations on a full disk, and %d refused", finished, refused)
				}
			}
			labtest.WantClaim(t, st, labtest.Rival(done), store.Completed)
			whileFull := labtest.Complete(t, st, running, answer)
			disk.Free(t)
			labtest.Eventually(t, "a completion after there is space again", func() bool { return labtest.Complete(t, st, running, answer) == nil })
			if got := labtest.WantClaim(t, st, labtest.Rival(running), store.Completed); string(got.Payload) != answer {
				t.Errorf("replayed %d bytes", len(got.Payload))
			}
			if got := labtest.WantClaim(t, st, labtest.Rival(done), store.Completed); string(got.Payload) != "answer" {
				t.Errorf("replayed %q", got.Payload)
			}
			labtest.Eventually(t, "a claim after there is space again", func() bool {
				got, err := st.Claim(t.Context(), newClaim())
				return err == nil && got.Outcome == store.Claimed
			})
			t.Logf("%d operations fitted; then 20 refused: %v; the completion of the one that ran: %v", finished, reason, whileFull)
		})
	}
}
