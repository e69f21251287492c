package program

import (
	"context"
	"encoding/binary"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// overProxy returns a fixture over Redis whose program goes through a proxy. The
// fixture's own store passes it by.
func overProxy(t *testing.T) (*fixture, *servers.Proxy) {
	t.Helper()
	server := servers.Redis.Shared(t)
	p := servers.StartProxy(t, server.Addr())
	return redisFixture(t, labtest.RedisClient(t, server.Addr()), "redis://"+p.Addr()), p
}

// TestRecordChangesWhileAPersonReads: the attempt that lapsed completes late, with the
// fence that the person saw, before the decision is confirmed. Then nothing is changed.
func TestRecordChangesWhileAPersonReads(t *testing.T) {
	t.Parallel()
	f := servedBy["redis"](t)
	id := store.DeriveID("tests", t.Name(), "")
	c := f.lapse(t, id, "refunds")
	s := startTerminal(t, f.env, "resolve", id.Short(), "--reason", "looked at", "--forget")
	s.await("Before", "After", "no record: the next request with the key runs the operation", "its handler may still run", "Type "+id.String()[:8]+" to forget the record:")
	payload, err := operate.Encode(protocol.Response{Status: 201})
	labtest.Must(t, err)
	f.finish(t, c, payload)
	s.typeIn(id.String()[:8] + keyEnter)
	s.exits(1)
	s.wrote("changed since it was shown, so nothing was written: it is completed now, attempt 1")
	if got := f.inspect(t, id); got.State != store.StateCompleted {
		t.Errorf("the record is %+v", got)
	}
}

// TestKeyIsNotShown: a typed key is not echoed, and an interrupt restores the terminal's
// echo.
func TestKeyIsNotShown(t *testing.T) {
	t.Parallel()
	s := startTerminal(t, nil, "find", "--scope", knownScope, "--id-only")
	s.await("Idempotency-Key (not shown):")
	s.typeIn(knownKey + keyEnter)
	s.exits(0)
	s.wrote(store.DeriveID(knownScope, "", knownKey).String())
	if strings.Contains(s.written(), knownKey[:8]) {
		t.Error("the key was shown")
	}

	s = startTerminal(t, nil, "find", "--scope", knownScope, "--id-only")
	s.await("Idempotency-Key (not shown):")
	echoes := func() bool {
		stty := exec.CommandContext(context.WithoutCancel(t.Context()), "stty", "-a")
		stty.Stdin = s.file
		out, err := stty.Output()
		labtest.Must(t, err)
		return regexp.MustCompile(`(^|\s)echo\b`).Match(out)
	}
	labtest.Eventually(t, "no echo", func() bool { return !echoes() })
	s.typeIn("abc" + keyCtrlC)
	s.exits(130)
	labtest.Eventually(t, "echo", echoes)
}

// TestColourAndQuestionsToTheTerminal: a terminal gets colour unless NO_COLOR is set, and
// is never asked anything.
func TestColourAndQuestionsToTheTerminal(t *testing.T) {
	t.Parallel()
	f := servedBy["redis"](t)
	for env, colour := range map[string]bool{"NO_COLOR=": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		s := startTerminal(t, append(f.env, env), "doctor")
		s.exits(1) // the server does not persist its data
		if coloured := strings.Contains(s.written(), "\x1b["); coloured != colour {
			t.Errorf("%s: colour: %v, want %v: %q", env, coloured, colour, s.written())
		}
		if rest := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(s.written(), ""); strings.Contains(rest, "\x1b") {
			t.Errorf("%s: the terminal was asked or told something: %q", env, rest)
		}
	}
	for _, wrong := range []string{"doctr", "--nonsense", "show"} { // before the flags are read
		s := startTerminal(t, nil, wrong, "--no-color")
		s.exits(2)
		if strings.Contains(s.written(), "\x1b") {
			t.Errorf("%s --no-color: %q", wrong, s.written())
		}
	}
}

// TestListingEndsEarly: a listing shows its progress. An interrupt, or a server that goes
// away, leaves the records that were found so far, with a sentence and an exit code.
func TestListingEndsEarly(t *testing.T) {
	t.Parallel()
	f, p := overProxy(t)
	f.fill(t, 12_000)
	p.Delay(20*time.Millisecond, 20*time.Millisecond)
	s := startTerminal(t, append(f.env, "TERM=dumb"), "list", "--limit", "3")
	s.exits(0)
	s.wrote("these are the first 3")
	if written := s.written(); strings.Contains(written, "\x1b") || strings.Contains(written, "looked at") {
		t.Errorf("a terminal whose cursor does not move got %q", written)
	}
	for line := range strings.SplitSeq(s.written(), "\r\n") {
		if len(line) > 100 && !strings.Contains(line, "…") {
			t.Errorf("the line does not fit: %q", line)
		}
	}

	s = startTerminal(t, f.env, "list", "--limit", "0")
	s.await("looked at,", "found")
	s.typeIn(keyCtrlC)
	s.exits(130)
	s.wrote("interrupted after ", "what is shown is incomplete", "  fill  ")

	s = startTerminal(t, f.env, "list", "--limit", "0", "--timeout", "3s")
	s.await("looked at,")
	p.Set(t, servers.Refuse)
	s.exits(3)
	s.wrote("listing stopped after ", "  fill  ")
}

// TestResolutionInDoubt: where the reply to a resolution is lost, the program says that
// it does not know.
func TestResolutionInDoubt(t *testing.T) {
	t.Parallel()
	f, p := overProxy(t)
	forget := func(name string, code int, lose bool) (store.ID, string) {
		id := store.DeriveID("tests", t.Name(), name)
		f.lapse(t, id, "refunds")
		fence := f.inspect(t, id).Fence
		if lose {
			p.On(string(binary.BigEndian.AppendUint64(nil, fence)), servers.LoseReply)
		}
		return id, runProgram(t, f.env, code, "resolve", id.String(), "--reason", "looked at", "--forget", "--yes", "--fence", strconv.FormatUint(fence, 10))
	}
	forget("warm", 0, false) // which brings the script to the server
	id, out := forget("lost reply", 3, true)
	if !strings.Contains(out, "the change may or may not have been written; look: reprise show "+id.String()) || !strings.Contains(out, `"level":"ERROR","msg":"reprise: a record was not resolved"`) {
		t.Errorf("the program wrote:\n%s", out)
	}
	if out := runProgram(t, f.env, 1, "show", id.String()); !strings.Contains(out, "there is no record with the ID") {
		t.Error(out)
	}
}

// TestInterruptedPurge: an interrupt ends a purge between two batches, and the reported
// records are deleted.
func TestInterruptedPurge(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	pg := labtest.SetupPostgres(t, server)
	f := postgresFixture(t, pg, server.URL())
	const all, batch = 500, 50
	f.fill(t, all)
	table := pg.Config.Schema + ".reprise_records"
	_, err := pg.Pool.Exec(t.Context(), "UPDATE "+table+" SET due_at = 0, valid_until = 0, lease_until = 0")
	labtest.Must(t, err)
	s := startTerminal(t, f.env, "purge", "--batch", strconv.Itoa(batch), "--pause", "400ms")
	s.await("deleted, ", "a second")
	s.typeIn(keyCtrlC)
	s.exits(130)
	var left int
	labtest.Must(t, pg.Pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&left))
	if left == 0 || left%batch != 0 {
		t.Errorf("%d records are left of %d", left, all)
	}
	s.wrote("interrupted between two batches; run it again to continue", strconv.Itoa(all-left)+" records deleted in ")
}

// fill writes n running records.
func (f *fixture) fill(tb testing.TB, n int) {
	tb.Helper()
	const workers = 32
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			for i := w; i < n; i += workers {
				if _, err := f.store.Claim(tb.Context(), claimRequest(store.DeriveID("fill", tb.Name(), strconv.Itoa(i)), "fill", time.Hour)); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}
