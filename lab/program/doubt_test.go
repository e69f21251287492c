package program

import (
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/servers"
)

// TestAmbiguousID: two IDs that begin alike are told apart by more digits.
func TestAmbiguousID(t *testing.T) {
	t.Parallel()
	overProxy(t, []string{"redis", "postgres"}, func(t *testing.T, f *fixture, _ proxy) {
		t.Helper()
		first, second := store.ID{0xde, 0xad, 0xbe, 0xef, 1}, store.ID{0xde, 0xad, 0xbe, 0xef, 2}
		f.lapse(t, first, "refunds")
		f.lapse(t, second, "refunds")
		out := runProgram(t, f.env, 1, "show", "deadbeef")
		for _, want := range []string{first.String(), second.String(), "the ID deadbeef is ambiguous: 2 records or more begin with it; give more digits"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
		}
		if out := runProgram(t, f.env, 0, "show", "DEADBEEF02"); !strings.Contains(out, second.String()) {
			t.Error(out)
		}
	})
}

// TestResolutionInDoubt: where the reply to a resolution is lost, the program says that
// it does not know.
func TestResolutionInDoubt(t *testing.T) {
	t.Parallel()
	overProxy(t, []string{"redis"}, func(t *testing.T, f *fixture, p proxy) {
		t.Helper()
		warm, id := store.DeriveID("tests", t.Name(), "warm"), store.DeriveID("tests", t.Name(), "lost reply")
		f.lapse(t, warm, "refunds") // its resolution brings the script to the server
		runProgram(t, f.env, 0, "resolve", warm.String(), "--reason", "looked at", "--forget", "--yes", "--fence", strconv.FormatUint(f.inspect(t, warm).Fence, 10))
		f.lapse(t, id, "refunds")
		fence := strconv.FormatUint(f.inspect(t, id).Fence, 10)
		p.On(string(binary.BigEndian.AppendUint64(nil, f.inspect(t, id).Fence)), servers.LoseReply)
		out := runProgram(t, f.env, 3, "resolve", id.String(), "--reason", "looked at", "--forget", "--yes", "--fence", fence)
		if !strings.Contains(out, "the change may or may not have been written; look: reprise show "+id.String()) || !strings.Contains(out, `"level":"ERROR","msg":"reprise: a record was not resolved"`) {
			t.Errorf("the program wrote:\n%s", out)
		}
		if out := runProgram(t, f.env, 1, "show", id.String()); !strings.Contains(out, "there is no record with the ID") {
			t.Error(out)
		}
	})
}
