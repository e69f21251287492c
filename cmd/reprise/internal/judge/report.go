package judge

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"strings"
	"time"
)

// Summary counts the cases of one level.
type Summary struct {
	Met      int `json:"met"`
	NotMet   int `json:"not_met"`
	NotShown int `json:"not_shown"`
}

// Summary counts the results of a level.
func (r *Report) Summary(l Level) Summary {
	return Summary{r.Count(l, Met), r.Count(l, NotMet), r.Count(l, NotShown)}
}

// MarshalJSON implements [json.Marshaler].
func (r *Report) MarshalJSON() ([]byte, error) {
	type caseJSON struct {
		ID       string  `json:"id"`
		Level    string  `json:"level"`
		State    State   `json:"state"`
		Sentence string  `json:"sentence"`
		Source   string  `json:"source"`
		Detail   string  `json:"detail,omitempty"`
		Elapsed  float64 `json:"elapsed_seconds"`
	}
	cases := make([]caseJSON, len(r.Results))
	for i, c := range r.Results {
		cases[i] = caseJSON{c.Case.ID, c.Level.String(), c.State, c.Case.Sentence, c.Case.Source, c.Detail, c.Elapsed.Seconds()}
	}
	o := r.Options
	return json.Marshal(struct {
		Schema   int                `json:"schema"`
		Version  string             `json:"version"`
		URL      string             `json:"url"`
		Profile  string             `json:"profile"`
		Only     []string           `json:"only"` // empty: the whole profile
		Header   string             `json:"key_header"`
		Started  time.Time          `json:"started"`
		Elapsed  float64            `json:"elapsed_seconds"`
		Requests int64              `json:"requests"`
		Bytes    int64              `json:"bytes"`
		Ended    string             `json:"ended,omitempty"` // why the run ended early
		Facts    []string           `json:"facts"`
		Summary  map[string]Summary `json:"summary"`
		Cases    []caseJSON         `json:"cases"`
	}{
		1, o.Version, o.URL.Redacted(), o.Profile.Name, append([]string{}, o.Only...), o.Header, r.Started.UTC(), r.Elapsed.Seconds(), r.Requests, r.Bytes, r.Ended, append([]string{}, r.Facts.Notes...),
		map[string]Summary{Must.String(): r.Summary(Must), Should.String(): r.Summary(Should), May.String(): r.Summary(May)},
		cases,
	})
}

// JUnit returns the report as JUnit's XML. A must that is not met is a failure; all else
// that is not met or not shown is skipped, so that the file agrees with [Report.Failed].
func (r *Report) JUnit() ([]byte, error) {
	type message struct {
		Text string `xml:"message,attr"`
		Type string `xml:"type,attr"`
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
	type testcase struct {
		Group   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *message `xml:"failure"`
		Skipped *message `xml:"skipped"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		Stamp    string     `xml:"timestamp,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: "reprise judge " + r.Options.Profile.Name, Tests: len(r.Results), Time: seconds(r.Elapsed), Stamp: r.Started.UTC().Format("2006-01-02T15:04:05")}
	for _, c := range r.Results {
		t := testcase{Group: c.Case.Group(), Name: c.Case.ID, Time: seconds(c.Elapsed)}
		m := &message{fmt.Sprintf("%s, %s: %s %s", c.Level, c.State, c.Case.Sentence, c.Detail), string(c.State)}
		switch {
		case c.State == NotMet && c.Level == Must:
			t.Failure = m
			suite.Failures++
		case c.State != Met:
			t.Skipped = m
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, t)
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

// Badge returns the report as a picture in SVG.
func (r *Report) Badge() []byte {
	must := r.Summary(Must)
	all := must.Met + must.NotMet + must.NotShown
	colour, text := "#2e7d32", fmt.Sprintf("%d of %d musts met", must.Met, all)
	if must.NotShown > 0 {
		colour = "#9e6a03"
	}
	if must.NotMet > 0 {
		colour, text = "#b3261e", fmt.Sprintf("%d of %d musts not met", must.NotMet, all)
	}
	const perLetter, margin = 7, 10
	label := "Idempotency-Key " + r.Options.Profile.Name
	left, right := len(label)*perLetter+2*margin, len(text)*perLetter+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-label="%[2]s: %[3]s"><title>%[2]s: %[3]s</title>`,
		left+right, html.EscapeString(label), html.EscapeString(text))
	fmt.Fprintf(&b, `<rect width="%d" height="20" fill="#444"/><rect x="%[1]d" width="%d" height="20" fill="%s"/>`, left, right, colour)
	fmt.Fprintf(&b, `<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="%d" y="14" textLength="%d">%s</text><text x="%d" y="14" textLength="%d">%s</text></g></svg>`,
		margin, left-2*margin, html.EscapeString(label), left+margin, right-2*margin, html.EscapeString(text))
	return append([]byte(b.String()), '\n')
}
