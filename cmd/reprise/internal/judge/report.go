package judge

import (
	"encoding/json"
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
