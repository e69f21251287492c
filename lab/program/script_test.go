package program

import (
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/reprise-go/reprise/core/store"
)

// run runs scripts one after the other over a fixture. Each finds the IDs of the records
// in variables: LAPSED has all digits, LAPSED_SHORT those that logs show.
func run(t *testing.T, f *fixture, ids map[string]store.ID, p testscript.Params) {
	t.Helper()
	path := filepath.Dir(program(t))
	p.Setup = func(env *testscript.Env) error {
		env.Vars = append(env.Vars, "SCOPE="+knownScope, "KEY="+knownKey, "ESC=\x1b", "NO_COLOR=")
		if f != nil {
			env.Vars = append(env.Vars, f.env...)
		}
		described := store.Record{ID: ids["DESCRIBED"], Fingerprint: fingerprint()}
		env.Vars = append(env.Vars, "PAYMENT_KEY="+described.Key("payment"))
		for name, id := range ids {
			env.Vars = append(env.Vars, name+"="+id.String(), name+"_SHORT="+id.Short())
			typed := filepath.Join(env.WorkDir, "typed-"+name) // the text that confirms a decision about it
			if err := os.WriteFile(typed, []byte(id.Short()+"\n"), 0o600); err != nil {
				return err
			}
		}
		env.Setenv("PATH", path+string(filepath.ListSeparator)+env.Getenv("PATH"))
		return nil
	}
	p.RequireUniqueNames = true
	p.Deadline, _ = t.Deadline() // a program that hangs prints where
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"exits":    exits,
		"harmless": harmless,
		"fence":    func(ts *testscript.TestScript, _ bool, args []string) { f.fence(t, ts, args) },
		"paste":    func(ts *testscript.TestScript, _ bool, args []string) { f.paste(ts, args) },
		"server": func(ts *testscript.TestScript, _ bool, args []string) {
			ts.Check(f.do(t.Context(), strings.Join(args, " ")))
		},
		"expired": func(ts *testscript.TestScript, _ bool, args []string) {
			n, err := strconv.Atoi(args[0])
			ts.Check(err)
			ts.Check(f.expire(t.Context(), n))
		},
		"retry": func(ts *testscript.TestScript, _ bool, args []string) { f.retry(t, ts, args) },
	}
	testscript.RunT(sequential{t}, p)
}

// sequential runs the scripts of one fixture one after the other.
type sequential struct{ *testing.T }

// Parallel is a no-op.
func (sequential) Parallel() {}

// Verbose reports whether the tests are.
func (sequential) Verbose() bool { return testing.Verbose() }

// Run runs a script.
func (s sequential) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(sequential{t}) }) //nolint:paralleltest // see Parallel
}

// exits runs a program and compares its exit code: exits CODE program args…
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	var failed *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &failed):
		code = failed.ExitCode()
	default:
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// harmless fails if the output of the last program has a character that a terminal obeys.
func harmless(ts *testscript.TestScript, _ bool, _ []string) {
	for _, stream := range []string{"stdout", "stderr"} {
		text := ts.ReadFile(stream)
		if !utf8.ValidString(text) {
			ts.Fatalf("%s is not UTF-8: %q", stream, text)
		}
		for _, r := range text {
			switch {
			case r == '\n' || r == '\t':
			case r < ' ', r >= 0x7f && r <= 0x9f, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
				ts.Fatalf("%s contains %U: %q", stream, r, text)
			}
		}
	}
}

// fence puts the fence of a record into a variable: fence VARIABLE ID
func (f *fixture) fence(t *testing.T, ts *testscript.TestScript, args []string) {
	t.Helper()
	r := f.inspect(t, parseID(ts, args[1]))
	ts.Setenv(args[0], strconv.FormatUint(r.Fence, 10))
}

// retry sends the client's request again: retry ID OUTCOME [STATUS BODY [FIELD: VALUE]…]
func (f *fixture) retry(t *testing.T, ts *testscript.TestScript, args []string) {
	t.Helper()
	outcome, response := f.replay(t, parseID(ts, args[0]))
	if outcome.String() != args[1] {
		ts.Fatalf("the retry is %v, want %s", outcome, args[1])
	}
	if len(args) < 4 {
		return
	}
	if got := strconv.Itoa(response.Status); got != args[2] || strings.TrimSuffix(string(response.Body), "\n") != args[3] {
		ts.Fatalf("the retry gets %s %q, want %s %q", got, response.Body, args[2], args[3])
	}
	for _, line := range args[4:] {
		name, value, _ := strings.Cut(line, ": ")
		if got, _ := response.Header.Get(name); got != value {
			ts.Fatalf("%s is %q, want %q", name, got, value)
		}
	}
}

func parseID(ts *testscript.TestScript, text string) store.ID {
	var id store.ID
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		ts.Fatalf("%q: %v", text, err)
	}
	return id
}
