package program

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
)

var record = flag.Bool("record", false, "write the recorded screens instead of comparing them")

// TestTop does on the screen what a person does: look, filter, open a record, resolve it,
// and make the window too small on the way.
func TestTop(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		if kind.name != "redis" && kind.name != "pgbouncer" {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			f := kind.setup(t)
			ids := f.seed(t)
			audit := filepath.Join(t.TempDir(), "audit.json")
			s := f.start(t, "top", "--every", "200ms", "--audit-log", audit)
			s.await("running 1", "stuck 3", "unreadable 1", "answers 4", ids["LAPSED"].Short(), "q quit")
			s.compare(t, "list-"+kind.name)

			s.typeIn("/hostile")
			s.await("filter: hostile_", ids["HOSTILE"].Short())
			s.typeIn(keyEnter)
			s.typeIn(keyEnter)
			s.await("record "+ids["HOSTILE"].Short(), `X-Csi: a\x9b2Jb\u009b31mc`, `X-Bidi: invoice\u202egpj.exe\u2066`)
			s.compare(t, "record-"+kind.name)
			s.typeIn("r")
			s.await("only a lapsed or an unreadable record can be resolved; this one is completed")
			s.typeIn("q")
			s.await("esc shows all")
			s.typeIn(keyEscape)

			s.resize(40, 8)
			s.await("The terminal is 40×8;", "top needs 60×12.")
			s.resize(90, 24)
			s.await("stuck 3", "enter open")

			// The first record needs a person most. Which of the three lapsed ones it is, the
			// store's clock says.
			s.typeIn("/" + ids["LAPSED2"].Short() + keyEnter + keyEnter)
			s.await("state       lapsed", "label       refunds", "The client gets next: a new run")
			s.typeIn("r")
			s.await("f  it did nothing", "a  it did its work")
			s.typeIn("a")
			s.await("Status of the answer:")
			s.typeIn("99" + keyEnter)
			s.await("Body, on one line")
			s.typeIn(keyEnter)
			s.await("the status 99 is not 200 to 999", "Status of the answer:")
			s.typeIn("201" + keyEnter + `{"ok":true}` + keyEnter)
			s.await("HTTP 201 Created", "Content-Type: application/json", `{"ok":true}`, "Reason, for the audit log:")
			s.typeIn("bank says so" + keyEnter)
			s.await("Type " + ids["LAPSED2"].String()[:8] + " to do it:")
			s.typeIn("yes" + keyEnter)
			s.await("these are not the first digits of the ID; nothing was changed")
			if got := f.inspect(t, ids["LAPSED2"]); got.State != reprise.StateLapsed {
				t.Fatalf("the record is %v before it was confirmed", got.State)
			}
			s.typeIn(ids["LAPSED2"].String()[:8] + keyEnter)
			s.await("the answer is kept: every retry gets it", "completed (resolved)", "The client gets next: 201 Created")
			s.typeIn(keyEscape)
			s.await("stuck 2", "answers 5")
			s.typeIn("q")
			s.exits(0)

			if outcome, response := f.replay(t, ids["LAPSED2"]); outcome != reprise.Completed || response.Status != 201 || string(response.Body) != `{"ok":true}` {
				t.Errorf("the retry is %v with %d %q", outcome, response.Status, response.Body)
			}
			log, err := os.ReadFile(audit)
			if err != nil || !strings.Contains(string(log), `"reprise: resolved","id":"`+ids["LAPSED2"].String()) || !strings.Contains(string(log), `"reason":"bank says so"`) {
				t.Errorf("the audit log is %q, %v", log, err)
			}
			for _, obeyed := range []string{"\x1b]", "\x9b2J", "\u009b", "\u202e"} {
				if strings.Contains(s.written(), obeyed) {
					t.Errorf("the program wrote %q to the terminal", obeyed)
				}
			}
		})
	}
}

// TestTopWhenTheServerGoes: the screen says so, and goes on when the server is back.
func TestTopWhenTheServerGoes(t *testing.T) {
	t.Parallel()
	overProxy(t, []string{"redis", "postgres"}, func(t *testing.T, f *fixture, p proxy) {
		t.Helper()
		f.seed(t)
		s := f.start(t, "top", "--every", "200ms", "--timeout", "1s")
		s.await("stuck 3")
		p.refuse(t)
		s.await("the store does not answer: ")
		p.forward(t)
		s.await("The application counts replays")
		s.typeIn(keyCtrlC)
		s.exits(0)
	})
}

// compare compares the screen with a recorded one. What depends on the clock and on IDs
// is replaced.
func (t *terminal) compare(tb testing.TB, name string) {
	tb.Helper()
	got := t.view()
	for _, r := range volatile {
		got = r.pattern.ReplaceAllString(got, r.with)
	}
	lines := strings.Split(got, "\n")
	sortAnswers(lines)
	got = strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", "screens", name+".txt")
	if *record {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if got != string(want) {
		tb.Errorf("the screen %s differs (go test -run TestTop -record writes it):\n%s\nwant:\n%s", name, got, want)
	}
}

// sortAnswers sorts the rows of answers, which stand together: those of the same
// millisecond are in any order.
func sortAnswers(lines []string) {
	isAnswer := func(line string) bool { return strings.Contains(line, "(short ID)  completed ") }
	first := slices.IndexFunc(lines, isAnswer)
	if first < 0 {
		return
	}
	end := first
	for end < len(lines) && isAnswer(lines[end]) {
		end++
	}
	slices.Sort(lines[first:end])
}

// volatile is what differs from run to run. The spaces after it go, too, since they
// depend on how long it is.
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(reprise top  ).*`), "${1}…"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "(ID)"},
	{regexp.MustCompile(`\b[0-9a-f]{12}\b`), "(short ID)"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d [\d:.]+ UTC`), "(instant)"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "(time)"},
	{regexp.MustCompile(` *\b\d+(µs|ms|s|m|h|d)( \d+[smh])?\b`), " (duration)"},
	{regexp.MustCompile(`(new|answered) +(-|[\d.]+/s)`), "$1 (rate)"},
	{regexp.MustCompile(`(oldest running|read|fence) +(-|\d+|\(duration\))`), "$1 (number)"},
	{regexp.MustCompile(`(AGE|LEASE|left|over for \(duration\)|LABEL|\(duration\)|STATE|-) {2,}`), "$1  "},
	{regexp.MustCompile(`\d+ records in`), "(number) records in"},
}
