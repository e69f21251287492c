package judged

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// result is a service and what the judge said of it.
type result struct {
	Name, Variant, Service string // Service is its command
	Ours                   bool
	Versions               map[string]string // of its modules or packages
	Runs                   []run
}

// run is the result of one profile.
type run struct {
	Profile, Command string
	Cases            []verdict
}

// verdict is a case in the judge's report.
type verdict struct{ ID, Level, State, Sentence, Detail string }

// read reads the report of reprise judge --json.
func read(profile, command string, report []byte) (run, error) {
	r := run{Profile: profile, Command: command}
	err := json.Unmarshal(report, &r)
	if err == nil && len(r.of("must", "", false)) == 0 {
		err = errors.New("the report has no must")
	}
	for _, c := range r.Cases {
		if !slices.Contains([]string{"met", "not met", "not shown"}, c.State) {
			err = errors.Join(err, fmt.Errorf("the case %s is %q, want met, not met or not shown", c.ID, c.State))
		}
	}
	return r, err
}

// of returns the cases of a level in a state, or in any: those about the HTTP server
// below, or about the middleware.
func (r run) of(level, state string, server bool) []verdict {
	var all []verdict
	for _, c := range r.Cases {
		if c.Level == level && (state == "" || c.State == state) && strings.HasPrefix(c.ID, "framing/") == server {
			all = append(all, c)
		}
	}
	return all
}

func (r *result) title() string {
	return strings.TrimSuffix(map[bool]string{true: "**Reprise**, "}[r.Ours]+r.Name+", "+r.Variant, ", ")
}

// made is a part of the page that the program writes.
var made = regexp.MustCompile(`(?s)<!-- made: (\w+) -->\n.*?<!-- end -->\n`)

// write writes the parts of the page in a folder.
func (b *board) write(folder string) error {
	name := filepath.Join(folder, "judge-scores.md")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	parts := map[string]func() string{"scores": b.scores, "peers": b.notMet, "reprise": b.ours, "commands": b.commands}
	page := made.ReplaceAllStringFunc(string(text), func(part string) string {
		of := made.FindStringSubmatch(part)[1]
		write := parts[of]
		delete(parts, of)
		return "<!-- made: " + of + " -->\n\n" + write() + "<!-- end -->\n"
	})
	if len(parts) > 0 {
		return fmt.Errorf("%s has no place for %v", name, slices.Sorted(maps.Keys(parts)))
	}
	return os.WriteFile(name, []byte(page), 0o644)
}

// scores has one row for each run, ours first, and the services without one.
func (b *board) scores() string {
	var s strings.Builder
	fmt.Fprintf(&s, "Judged on %s at `%s`; %s.\n\n", b.date, b.commit, versions(b.versions))
	s.WriteString("| | profile | musts met | not met | not shown | shoulds met | not met | not shown | musts of the server met | not met |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, j := range b.judged {
		for _, r := range j.Runs {
			fmt.Fprintf(&s, "| %s | %s", j.title(), r.Profile)
			for _, level := range []string{"must", "should"} {
				for _, state := range []string{"met", "not met", "not shown"} {
					fmt.Fprintf(&s, " | %d", len(r.of(level, state, false)))
				}
			}
			fmt.Fprintf(&s, " | %d | %d |\n", len(r.of("must", "met", true)), len(r.of("must", "not met", true)))
		}
	}
	for _, l := range b.left {
		fmt.Fprintf(&s, "\nNot judged: %s\n", cell(l))
	}
	return s.String()
}

// notMet has what the runs of others do not meet.
func (b *board) notMet() string {
	var s strings.Builder
	for _, j := range b.judged {
		for _, r := range j.Runs {
			if j.Ours {
				continue
			}
			fmt.Fprintf(&s, "### %s, %s\n\n%s.\n\n", j.title(), r.Profile, versions(j.Versions))
			if musts := r.of("must", "not met", false); len(musts) > 0 {
				s.WriteString("| must that is not met | the rule | seen |\n|---|---|---|\n")
				for _, c := range musts {
					fmt.Fprintf(&s, "| %s | %s | %s |\n", c.ID, cell(c.Sentence), cell(c.Detail))
				}
				s.WriteString("\n")
			}
			for _, list := range []struct {
				title string
				cases []verdict
			}{
				{"Musts that are not met, of the server", r.of("must", "not met", true)},
				{"Shoulds that are not met", r.of("should", "not met", false)},
				{"Shoulds that are not met, of the server", r.of("should", "not met", true)},
				{"Musts that are not shown", slices.Concat(r.of("must", "not shown", false), r.of("must", "not shown", true))},
			} {
				if len(list.cases) > 0 {
					var ids []string
					for _, c := range list.cases {
						ids = append(ids, c.ID)
					}
					fmt.Fprintf(&s, "* %s: %s.\n", list.title, strings.Join(ids, ", "))
				}
			}
			s.WriteString("\n")
		}
	}
	return s.String()
}

// ours has each case that one of our services does not meet, and those that do not.
func (b *board) ours() string {
	where := map[string][]string{}
	for _, j := range b.judged {
		for _, r := range j.Runs {
			for _, c := range r.Cases {
				if j.Ours && c.State == "not met" {
					key := c.Level + " " + c.ID + ": " + c.Sentence
					where[key] = append(where[key], strings.TrimPrefix(j.title(), "**Reprise**, ")+" ("+r.Profile+")")
				}
			}
		}
	}
	var s strings.Builder
	s.WriteString("| not met | by |\n|---|---|\n")
	for _, c := range slices.Sorted(maps.Keys(where)) {
		fmt.Fprintf(&s, "| %s | %s |\n", cell(c), strings.Join(where[c], "; "))
	}
	return s.String()
}

// commands has how each service was started and judged.
func (b *board) commands() string {
	var s strings.Builder
	s.WriteString("| service | started with |\n|---|---|\n")
	judges := map[string]bool{}
	for _, j := range b.judged {
		fmt.Fprintf(&s, "| %s | `%s` |\n", j.title(), j.Service)
		for _, r := range j.Runs {
			judges["* `"+r.Command+"`\n"] = true
		}
	}
	return s.String() + "\nEach was judged with\n\n" + strings.Join(slices.Sorted(maps.Keys(judges)), "")
}

// versions lists names and versions by name.
func versions(of map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, name+" "+of[name])
	}
	return strings.Join(list, ", ")
}

// cell makes text, which may have the body of an answer, fit into a cell of a table.
func cell(text string) string {
	const most = 160
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > most {
		line = append(line[:most], '…')
	}
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`).Replace(string(line))
}

// The page has a row for each run, what is not met of it and nothing that is, and keeps
// its prose.
func TestThePageHasEveryRun(t *testing.T) {
	t.Parallel()
	r, err := read("draft-07", "reprise judge URL", []byte(`{"cases": [
		{"id": "replay/once", "level": "must", "state": "met", "sentence": "Retries are answered by the first run."},
		{"id": "replay/bytes", "level": "must", "state": "not met", "sentence": "Bodies are replayed unchanged.", "detail": "came back as <b>\n|4|</b>"},
		{"id": "framing/names", "level": "must", "state": "not met", "sentence": "A bad name is refused.", "detail": "201"},
		{"id": "key/long", "level": "should", "state": "not met", "sentence": "A long key is refused.", "detail": "201"},
		{"id": "concurrency/addresses", "level": "must", "state": "not shown", "sentence": "One runs.", "detail": "no second address"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	b := &board{date: "2026-01-02", commit: "abc", left: []string{"a peer: it does not start"}, judged: []*result{
		{Name: "nethttp", Variant: "memory", Ours: true, Runs: []run{r}}, {Name: "theirs", Service: "own", Versions: map[string]string{"fiber": "v2"}, Runs: []run{r}},
	}}
	const page = "prose\n<!-- made: scores -->\nold\n<!-- end -->\n<!-- made: peers -->\n<!-- end -->\n<!-- made: reprise -->\n<!-- end -->\n"
	dir := t.TempDir()
	file := filepath.Join(dir, "judge-scores.md")
	for text, want := range map[string]bool{page: false, page + "<!-- made: commands -->\n<!-- end -->\n": true} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.write(dir); (err == nil) != want {
			t.Errorf("write: %v, want %v", err, want)
		}
		if !want {
			continue
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"prose\n<!-- made: scores -->\n", "Judged on 2026-01-02 at `abc`", "| **Reprise**, nethttp, memory | draft-07 | 1 | 1 | 1 | 0 | 1 | 0 | 0 | 1 |",
			"| theirs | draft-07 | 1 | 1 | 1 | 0 | 1 | 0 | 0 | 1 |", "Not judged: a peer: it does not start", "### theirs, draft-07\n\nfiber v2.",
			"| replay/bytes | Bodies are replayed unchanged. | came back as &lt;b&gt; \\|4\\|&lt;/b&gt; |", "* Musts that are not met, of the server: framing/names.",
			"* Shoulds that are not met: key/long.", "* Musts that are not shown: concurrency/addresses.",
			"| must replay/bytes: Bodies are replayed unchanged. | nethttp, memory (draft-07) |", "* `reprise judge URL`",
		} {
			if !strings.Contains(string(got), want) {
				t.Errorf("the page lacks %q:\n%s", want, got)
			}
		}
		if strings.Contains(string(got), "replay/once") || strings.Contains(string(got), "old") {
			t.Error("the page lists a case that is met, or an old part")
		}
	}
	for _, text := range []string{"no", `{"cases": []}`, `{"cases": [{"id": "replay/once", "level": "must", "state": "perhaps"}]}`} {
		if _, err := read("draft-07", "", []byte(text)); err == nil {
			t.Errorf("the report %s is understood", text)
		}
	}
}
