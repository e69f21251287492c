package program

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// proxy is a proxy between the program and the server. The fixture's own store passes it
// by.
type proxy struct{ *servers.Proxy }

func (p proxy) refuse(tb testing.TB) { tb.Helper(); p.Set(tb, servers.Refuse) }

// overProxy runs f on stores of these kinds, with a fixture whose program goes through a
// proxy.
func overProxy(t *testing.T, kinds []string, f func(t *testing.T, fixture *fixture, p proxy)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if kind == "redis" {
				server := servers.Redis.Shared(t)
				p := proxy{servers.StartProxy(t, server.Addr())}
				f(t, redisFixture(t, labtest.RedisClient(t, server.Addr()), "redis://"+p.Addr()), p)
				return
			}
			server := servers.SharedPostgres(t)
			p := proxy{servers.StartProxy(t, server.Addr())}
			f(t, postgresFixture(t, labtest.SetupPostgres(t, server), p.URL(server.URL())), p)
		})
	}
}

// TestRecordChangesWhileAPersonReads: the record is claimed again before the decision is
// confirmed, which then changes no record: neither a record that runs nor one whose new
// attempt lapsed as well.
func TestRecordChangesWhileAPersonReads(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, f *fixture) {
		f.changesWhileRead(t, store.StateRunning, time.Hour)
		f.changesWhileRead(t, store.StateLapsed, time.Millisecond)
	})
}

// TestUnknownOutcomeIsShownWithItsReason: an unknown outcome is listed as
// stuck, and resolved as a record that lapsed.
func TestUnknownOutcomeIsShownWithItsReason(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			f := kind.setup(t)
			id := store.DeriveID("tests", t.Name(), "unknown")
			claim := f.claim(t, id, "payouts", time.Hour)
			if err := f.store.Unknown(t.Context(), store.UnknownRequest{ID: id, Owner: claim.Owner, Reason: "the bank timed out"}); err != nil {
				t.Fatal(err)
			}
			for _, command := range [][]string{{"stuck", "--label", "payouts"}, {"list", "--state", "unknown"}, {"show", id.Short()}} {
				s := f.start(t, command...)
				s.await(id.Short(), "unknown", "the bank timed out")
				s.exits(map[bool]int{true: 1}[command[0] == "stuck"])
			}
			s := f.start(t, "resolve", id.Short(), "--reason", "looked at", "--forget")
			s.await("Before", "After", "it may still run: make sure that it has ended", "Type "+id.String()[:8]+" to forget the record:")
			s.typeIn(id.String()[:8] + keyEnter)
			s.exits(0)
		})
	}
}

func (f *fixture) changesWhileRead(t *testing.T, state store.RecordState, lease time.Duration) {
	t.Helper()
	id := store.DeriveID("tests", t.Name(), state.String())
	f.lapse(t, id, "refunds")
	s := f.start(t, "resolve", id.Short(), "--reason", "looked at", "--forget")
	s.await("Before", "After", "no record: the next request with the key runs the operation", "its handler may still run", "Type "+id.String()[:8]+" to forget the record:")
	takeover, err := f.store.Claim(t.Context(), store.ClaimRequest{
		ID: id, Owner: store.NewOwner(), Fingerprint: fingerprint(), Lease: lease, Policy: store.Policy{Retention: time.Hour}, Takeover: true,
	})
	if err != nil || takeover.Outcome != store.Claimed || takeover.Attempt != 2 {
		t.Fatalf("%+v, %v", takeover, err)
	}
	f.awaitState(t, id, state)
	s.typeIn(id.String()[:8] + keyEnter)
	s.exits(1)
	s.wrote("changed since it was shown, so nothing was written: it is " + state.String() + " now, attempt 2")
	if got := f.inspect(t, id); got.State != state || got.Fence != takeover.Fence {
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
	s.awaitEcho(false)
	s.typeIn("abc" + keyCtrlC)
	s.exits(130)
	s.awaitEcho(true)
}

// awaitEcho waits until the terminal echoes the input, or does not.
func (t *terminal) awaitEcho(want bool) {
	t.tb.Helper()
	var out []byte
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // polls a terminal
		stty := exec.CommandContext(context.WithoutCancel(t.tb.Context()), "stty", "-a")
		stty.Stdin = t.file
		var err error
		if out, err = stty.Output(); err != nil {
			t.tb.Fatal(err)
		}
		if echo := regexp.MustCompile(`(^|\s)echo\b`).Match(out); echo == want {
			return
		}
	}
	t.tb.Fatalf("echo is not %v:\n%s", want, out)
}

// TestColourAndQuestionsToTheTerminal: a terminal gets colour unless NO_COLOR is set, and
// is never asked anything.
func TestColourAndQuestionsToTheTerminal(t *testing.T) {
	t.Parallel()
	f := redisFixture(t, labtest.RedisClient(t, servers.Redis.Shared(t).Addr()), "redis://"+servers.Redis.Shared(t).Addr())
	for name, c := range map[string]struct {
		env    []string
		args   []string
		colour bool
	}{
		"colour":   {args: []string{"doctor"}, colour: true},
		"NO_COLOR": {env: []string{"NO_COLOR=1"}, args: []string{"doctor"}},
		"flag":     {args: []string{"doctor", "--no-color"}},
		"dumb":     {env: []string{"TERM=dumb"}, args: []string{"doctor"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startTerminal(t, append(append([]string{"NO_COLOR="}, f.env...), c.env...), c.args...)
			s.exits(1) // the server does not persist its data
			if coloured := strings.Contains(s.written(), "\x1b["); coloured != c.colour {
				t.Errorf("colour: %v, want %v: %q", coloured, c.colour, s.written())
			}
			if rest := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(s.written(), ""); strings.Contains(rest, "\x1b") {
				t.Errorf("the terminal was asked or told something: %q", rest)
			}
		})
	}
}

// TestInterruptedListing: a listing shows its progress, and an interrupt prints the
// records found so far.
func TestInterruptedListing(t *testing.T) {
	t.Parallel()
	overProxy(t, []string{"redis", "postgres"}, func(t *testing.T, f *fixture, p proxy) {
		t.Helper()
		f.fill(t, 12_000)
		p.Delay(20*time.Millisecond, 20*time.Millisecond)
		s := f.start(t, "list", "--limit", "0")
		s.await("looked at,", "found")
		s.typeIn(keyCtrlC)
		s.exits(130)
		s.wrote("interrupted after ", "what is shown is incomplete", "  fill  ")
	})
}

// TestServerGoesAwayInTheMiddleOfAListing: the records found so far are printed, with a
// sentence and exit code 3.
func TestServerGoesAwayInTheMiddleOfAListing(t *testing.T) {
	t.Parallel()
	overProxy(t, []string{"redis", "postgres"}, func(t *testing.T, f *fixture, p proxy) {
		t.Helper()
		f.fill(t, 12_000)
		p.Delay(20*time.Millisecond, 20*time.Millisecond)
		s := f.start(t, "list", "--limit", "0", "--timeout", "3s")
		s.await("looked at,")
		p.refuse(t)
		s.exits(3)
		s.wrote("listing stopped after ", "  fill  ")
	})
}

// fill writes n running records.
func (f *fixture) fill(tb testing.TB, n int) {
	tb.Helper()
	const workers = 32
	errs := make(chan error, workers)
	for w := range workers {
		go func() {
			for i := w; i < n; i += workers {
				id := store.DeriveID("fill", tb.Name(), time.Duration(i).String())
				_, err := f.store.Claim(context.WithoutCancel(tb.Context()), store.ClaimRequest{
					ID: id, Owner: store.NewOwner(), Fingerprint: fingerprint(), Policy: store.Policy{Label: "fill", Retention: time.Hour}, Lease: time.Hour,
				})
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			tb.Fatal(err)
		}
	}
}
