package repriseredis

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// The time to live that a claim read beside a completed record counts only if it is that
// of this record: the record may have ended, and another one come, between the commands.
func TestValidityBelongsToTheFoundRecord(t *testing.T) {
	t.Parallel()
	const span = time.Hour - time.Millisecond // how long after its completion the key expires
	found := string(replayable("payload"))
	same, later := found[:record.IdentitySize], found[:record.IdentitySize-1]+"\xff"
	for _, c := range []struct {
		name       string
		left, head string
		want, age  time.Duration
	}{
		{"the same record", ":5000\r\n", bulk(same), 5 * time.Second, span - 5001*time.Millisecond},
		{"its last millisecond", ":0\r\n", bulk(same), time.Nanosecond, span - time.Millisecond},
		{"its first millisecond", ":3599999\r\n", bulk(same), span, 0},
		{"a record that somebody made persist", ":-1\r\n", bulk(same), store.MaxDuration, 0},
		{"another record by now", ":5000\r\n", bulk(later), 0, 0},
		{"no record any more", ":-2\r\n", bulk(""), 0, 0},
		{"a record that ended and came back", ":-2\r\n", bulk(same), 0, 0},
		{"no permission for the first", "-NOPERM\r\n", bulk(same), 0, 0},
		{"no permission for the second", ":5000\r\n", "-NOPERM\r\n", 0, 0},
	} {
		for _, config := range []Config{{}, {NoCombining: true}, {Durability: Acked(1)}} {
			f := newFake(t, func(_, _ int, command []string) string {
				switch command[0] {
				case "set":
					return bulk(found)
				case "pttl":
					return c.left
				case "getrange":
					if from, to := command[2], command[3]; from != "0" || to != strconv.Itoa(record.IdentitySize-1) {
						t.Errorf("asked for the bytes %s to %s", from, to)
					}
					return c.head
				default:
					return bulk("L")
				}
			})
			r := store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}}
			s, err := New(newClient(t, f), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			got, err := s.Claim(t.Context(), r)
			want := store.ClaimResult{Outcome: store.Completed, Payload: []byte("payload"), Validity: c.want, Age: c.age}
			if c.want == 0 { // the script decides
				want = store.ClaimResult{Outcome: store.Lapsed}
			}
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, want)
			}
		}
	}
}
