package scores

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the page that the committed results make")

// folder has the committed results and their page.
var folder = filepath.Join("..", "..", "docs", "engineering")

func TestPageIsThatOfTheResults(t *testing.T) {
	t.Parallel()
	s, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := s.Write(folder); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(folder, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != s.Page() {
		t.Errorf("%s is not what %s and the list of peers make: run go test ./lab/scores -update", pageFile, resultsFile)
	}
	for _, p := range Peers {
		if !slices.ContainsFunc(s.Judged, func(j Judged) bool { return j.Name == p.Name && !j.Ours }) &&
			!slices.ContainsFunc(s.Left, func(l Left) bool { return strings.HasPrefix(l.Name, p.Name) }) {
			t.Errorf("%s has no score and is not left out", p.Name)
		}
	}
	for _, j := range s.Judged {
		if !j.Ours && !slices.ContainsFunc(Peers, func(p Peer) bool { return p.Name == j.Name }) {
			t.Errorf("%s is judged, and its documentation's claims are missing", j.Name)
		}
	}
}

// reported is a report of the judge with cases of each kind.
const reported = `{"cases": [
	{"id": "replay/once", "level": "must", "state": "met", "sentence": "Retries are answered by the first run."},
	{"id": "replay/bytes", "level": "must", "state": "not met", "sentence": "Bodies are replayed unchanged.", "detail": "came back as <b>\n|4|</b>"},
	{"id": "framing/names", "level": "must", "state": "not met", "sentence": "A bad name is refused.", "detail": "201"},
	{"id": "key/long", "level": "should", "state": "not met", "sentence": "A long key is refused.", "detail": "201"},
	{"id": "concurrency/addresses", "level": "must", "state": "not shown", "sentence": "One runs.", "detail": "no second address"}]}`

func TestPageSaysFirstWhatTheJudgeCannotSee(t *testing.T) {
	t.Parallel()
	s := &Scores{Date: "2026-01-02", Commit: "abc", Sentences: map[string]string{}}
	run, err := s.Add("draft-07", "reprise judge URL", []byte(reported))
	if err != nil {
		t.Fatal(err)
	}
	s.Judged = []Judged{
		{Name: "nethttp", Variant: "memory", Ours: true, Runs: []Run{run}},
		{Name: Peers[0].Name, Variant: "memory", Service: "own", Versions: map[string]string{"fiber": "v2"}, Runs: []Run{run}},
	}
	s.Left = []Left{{"missing peer", "it does not start"}}
	page := s.Page()
	last := -1
	for _, text := range []string{
		"## What the judge cannot see",
		"## How to read it",
		"## The scores of 2026-01-02",
		"| **Reprise**, nethttp, memory | draft-07 | 1 | 1 | 1 | 0 | 1 | 0 | 0 | 1 |",
		"| " + Peers[0].Name + ", memory | draft-07 | 1 | 1 | 1 | 0 | 1 | 0 | 0 | 1 |",
		"### " + Peers[0].Name,
		"[documentation](" + Peers[0].Link + ")",
		Peers[0].Claims[0],
		Peers[0].Notes[0],
		"| replay/bytes | Bodies are replayed unchanged. | came back as &lt;b&gt; \\|4\\|&lt;/b&gt; |",
		"* Musts that are not met, of the server: framing/names.",
		"Shoulds that are not met: key/long.",
		"Musts that are not shown: concurrency/addresses.",
		"## Reprise\n",
		"must replay/bytes",
		"| missing peer | it does not start |",
		NotJudged[0].Name,
		"* `reprise judge URL`",
	} {
		at := strings.Index(page, text)
		if at <= last {
			t.Errorf("%q is not on the page, or in the wrong place", text)
		}
		last = max(last, at)
	}
	if strings.Contains(page, "replay/once") {
		t.Error("the page lists a case that is met")
	}
}

func TestAddRefusesAReportThatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not JSON":  "no",
		"no cases":  `{"cases": []}`,
		"new state": `{"cases": [{"id": "replay/once", "level": "must", "state": "perhaps"}]}`,
	} {
		if _, err := (&Scores{Sentences: map[string]string{}}).Add("draft-07", "", []byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestResultsSurviveTheFile(t *testing.T) {
	t.Parallel()
	s := &Scores{Date: "2026-01-02", Sentences: map[string]string{}}
	run, err := s.Add("draft-07", "reprise judge URL", []byte(reported))
	if err != nil {
		t.Fatal(err)
	}
	s.Judged = []Judged{{Name: "nethttp", Ours: true, Runs: []Run{run}}}
	dir := t.TempDir()
	if err := s.Write(dir); err != nil {
		t.Fatal(err)
	}
	again, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	was, _ := json.Marshal(s) // a struct of strings and numbers
	if is, _ := json.Marshal(again); !bytes.Equal(is, was) {
		t.Errorf("%s, want %s", is, was)
	}
}
