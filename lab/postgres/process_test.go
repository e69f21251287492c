package postgres

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// The environment of the process that TestPostgresStoppedProcess stops.
const (
	pgChildURL    = "REPRISE_TEST_CHILD_URL"
	pgChildSchema = "REPRISE_TEST_CHILD_SCHEMA"
	pgChildID     = "REPRISE_TEST_CHILD_ID"
)

// pgStoppedTimeout is the TxTimeout of TestPostgresStoppedProcess and of its child.
const pgStoppedTimeout = 4 * time.Second

// TestPostgresStoppedProcess (G4): an owner whose process is stopped in the middle of its
// attempt, for longer than its lease and than any timeout, and one whose process is
// killed, have no effects.
func TestPostgresStoppedProcess(t *testing.T) {
	t.Parallel()
	server := servers.SharedPostgres(t)
	f := pgSetup(t, server)
	f.exec(t, "CREATE TABLE "+f.name("effects")+" (owner bytea)")
	st := f.Transactional(t)
	for _, killed := range []bool{false, true} {
		r := pgClaim()
		r.Fingerprint = store.Fingerprint{}
		child := startPgChild(t, server.URL(), f.Config.Schema, r)
		child.expect(t, "claimed")
		signal := syscall.SIGSTOP
		if killed {
			signal = syscall.SIGKILL
		}
		child.signal(t, signal)
		pgEventually(t, "the lease lapses", func() bool { return pgMustNotFail(t, st, r).Outcome == store.Claimed })
		if _, err := pgTx(t, st, r).Exec(t.Context(), "INSERT INTO "+f.name("effects")+" VALUES ($1)", r.Owner[:]); err != nil {
			t.Fatal(err)
		}
		pgWant(t, "complete", pgComplete(t, st, r, "mine"), nil)
		if !killed {
			child.goOn(t)
			child.signal(t, syscall.SIGCONT)
			child.expect(t, "not applied")
		}
		if got := pgMustClaim(t, st, pgRival(r), store.Completed); string(got.Payload) != "mine" {
			t.Errorf("replayed %q", got.Payload)
		}
		if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.name("effects")+" WHERE owner = $1", r.Owner[:]); n != 1 {
			t.Errorf("%d effects of the second owner, want 1", n)
		}
	}
	if n := pgValue[int](t, f.Pool, "SELECT count(*) FROM "+f.name("effects")); n != 2 {
		t.Errorf("%d effects of two keys", n)
	}
}

// TestPostgresChild is the other process: it claims, has an effect, lingers, and
// completes.
func TestPostgresChild(t *testing.T) {
	if os.Getenv(pgChildURL) == "" {
		t.Skip("it runs as the other process of TestPostgresStoppedProcess")
	}
	pool, err := pgxpool.New(t.Context(), os.Getenv(pgChildURL))
	pgWant(t, "pool", err, nil)
	defer pool.Close()
	c := reprisepg.Config{Schema: os.Getenv(pgChildSchema), TxTimeout: pgStoppedTimeout}
	f := pgOn(pool, c)
	st := f.Transactional(t)
	r := pgClaim()
	r.Fingerprint, r.Lease = store.Fingerprint{}, time.Second // as the other process has it
	if _, err := hex.Decode(r.ID[:], []byte(os.Getenv(pgChildID))); err != nil {
		t.Fatal(err)
	}
	pgMustClaim(t, st, r, store.Claimed)
	if _, err := pgTx(t, st, r).Exec(t.Context(), "INSERT INTO "+f.name("effects")+" VALUES ($1)", r.Owner[:]); err != nil {
		t.Fatal(err)
	}
	pgSay("claimed")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil { // it is stopped until then
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	switch err := st.Complete(ctx, pgCompletion(r, "child")); {
	case err == nil:
		pgSay("completed")
	case errors.Is(err, store.ErrNotApplied), errors.Is(err, store.ErrLeaseLost):
		pgSay("not applied")
	default:
		pgSay("unknown: " + err.Error())
	}
}

// pgSay tells the test what this process, its child, has done.
func pgSay(what string) { fmt.Fprintln(os.Stdout, "child: "+what) }

// pgChild is a process that runs TestPostgresChild.
type pgChild struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	input io.Writer
}

func startPgChild(t *testing.T, url, schema string, r store.ClaimRequest) *pgChild {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPostgresChild$", "-test.v") //nolint:gosec // this very program
	cmd.Env = append(os.Environ(), pgChildURL+"="+url, pgChildSchema+"="+schema, pgChildID+"="+r.ID.String())
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &pgChild{cmd: cmd, lines: bufio.NewScanner(out), input: in}
}

// expect waits for a line of the child.
func (c *pgChild) expect(t *testing.T, want string) {
	t.Helper()
	for c.lines.Scan() {
		if said, ok := strings.CutPrefix(c.lines.Text(), "child: "); ok {
			if said != want {
				t.Fatalf("the other process says %q, want %q", said, want)
			}
			return
		}
		t.Log("the other process: " + c.lines.Text())
	}
	t.Fatalf("the other process ended without saying %q, %v", want, c.lines.Err())
}

// goOn lets the child complete, once it is not stopped.
func (c *pgChild) goOn(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c.input, "\n"); err != nil {
		t.Fatal(err)
	}
}

func (c *pgChild) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
