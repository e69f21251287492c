// Package scores has the results of reprise judge on Reprise and on other idempotency
// middlewares, and makes the page of them. The program that judges is the test of
// tools/peers/judged.
package scores

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The files in the folder docs/engineering.
const (
	resultsFile = "judge-scores.json"
	pageFile    = "judge-scores.md"
)

// Scores are the results of one run of the program.
type Scores struct {
	Date      string            `json:"date"`
	Commit    string            `json:"commit"`   // of the judge and of Reprise
	Versions  map[string]string `json:"versions"` // of Go, Node and the servers
	Judged    []Judged          `json:"judged"`
	Left      []Left            `json:"left_out"`
	Sentences map[string]string `json:"sentences"` // of the cases that some service does not meet
}

// Judged is a service and its results.
type Judged struct {
	Name     string            `json:"name"` // of a peer: as in the list of peers
	Variant  string            `json:"variant"`
	Ours     bool              `json:"ours"`
	Service  string            `json:"service"`  // its command
	Versions map[string]string `json:"versions"` // of its modules or packages
	Runs     []Run             `json:"runs"`
}

// Run is the result of one profile.
type Run struct {
	Profile  string           `json:"profile"`
	Command  string           `json:"command"`
	Levels   map[string]Count `json:"levels"` // of the cases about the middleware
	Server   map[string]Count `json:"server"` // of those about the HTTP server below
	NotMet   []Case           `json:"not_met"`
	NotShown []Case           `json:"not_shown"`
}

// Count counts the cases of a level.
type Count struct {
	Met      int `json:"met"`
	NotMet   int `json:"not_met"`
	NotShown int `json:"not_shown"`
}

// Case is a case that was not met, with the judge's reason, or not shown.
type Case struct {
	ID     string `json:"id"`
	Level  string `json:"level"`
	Detail string `json:"detail,omitempty"`
}

// Left is a candidate without a score.
type Left struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// report is the part of the judge's JSON that the scores need.
type report struct {
	Cases []struct{ ID, Level, State, Sentence, Detail string }
}

// Add returns the run that a report of reprise judge --json says, and notes the sentences
// of the cases that are not met.
func (s *Scores) Add(profile, command string, reported []byte) (Run, error) {
	var r report
	if err := json.Unmarshal(reported, &r); err != nil {
		return Run{}, err
	}
	run := Run{Profile: profile, Command: command, Levels: map[string]Count{}, Server: map[string]Count{}, NotMet: []Case{}, NotShown: []Case{}}
	for _, c := range r.Cases {
		k, counts := Case{c.ID, c.Level, shortened(c.Detail)}, run.Levels
		if k.ofServer() {
			counts = run.Server
		}
		n := counts[c.Level]
		switch c.State {
		case "met":
			n.Met++
		case "not met":
			n.NotMet++
			run.NotMet = append(run.NotMet, k)
			s.Sentences[c.ID] = c.Sentence
		case "not shown":
			n.NotShown++
			run.NotShown = append(run.NotShown, Case{ID: c.ID, Level: c.Level})
		default:
			return Run{}, fmt.Errorf("the case %s is %q, want met, not met or not shown", c.ID, c.State)
		}
		counts[c.Level] = n
	}
	if run.Levels["must"] == (Count{}) {
		return Run{}, errors.New("the report has no must")
	}
	return run, nil
}

// Read reads the results in a folder.
func Read(folder string) (*Scores, error) {
	text, err := os.ReadFile(filepath.Join(folder, resultsFile))
	if err != nil {
		return nil, err
	}
	s := new(Scores)
	return s, json.Unmarshal(text, s)
}

// Write writes the results and their page into a folder.
func (s *Scores) Write(folder string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, resultsFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, pageFile), []byte(s.Page()), 0o644)
}
