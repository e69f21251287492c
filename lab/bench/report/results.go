// Package report keeps the results of the benchmarks, and makes the table and the chart
// of docs/engineering/benchmarks.md from them.
package report

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Results are the results of every suite, by its name: the content of
// docs/engineering/benchmarks.json.
type Results map[string]Suite

// Suite is one run of a suite, on one machine.
type Suite struct {
	Command string   `json:"command"` // that made it
	Date    string   `json:"date"`
	Commit  string   `json:"commit"`
	Machine Machine  `json:"machine"`
	Rounds  int      `json:"rounds,omitempty"`        // that count, each in another order
	Seconds float64  `json:"round_seconds,omitempty"` // of one measurement in a round
	LeftOut []string `json:"left_out,omitempty"`      // variants that could not be measured, and why
	Rows    []Row    `json:"rows"`
}

// Machine is the machine that a suite ran on.
type Machine struct {
	CPU      string  `json:"cpu"`
	Cores    int     `json:"cores"`
	Load     float64 `json:"load"`                 // average of the last minute before the suite: other work on the machine
	After    float64 `json:"load_after,omitempty"` // likewise after it: other work, and the suite's own
	Go       string  `json:"go"`
	Redis    string  `json:"redis,omitempty"`
	Postgres string  `json:"postgres,omitempty"`
	MariaDB  string  `json:"mariadb,omitempty"`
	Etcd     string  `json:"etcd,omitempty"`
	Node     string  `json:"node,omitempty"`
}

// versions names the servers of the stores and their versions, as far as there were any.
func (m Machine) versions() (list []string) {
	for _, other := range []struct{ name, version string }{{"Redis", m.Redis}, {"PostgreSQL", m.Postgres}, {"MariaDB", m.MariaDB}, {"etcd", m.Etcd}, {"Node", m.Node}} {
		if version, _, _ := strings.Cut(strings.TrimPrefix(other.version, "v"), " "); version != "" {
			list = append(list, other.name+" "+version)
		}
	}
	return list
}

// Row is the result of one variant in one situation: medians over the rounds. Values that
// it lacks are zero.
type Row struct {
	Variant     string             `json:"variant"`
	Kind        string             `json:"kind,omitempty"`
	Connections int                `json:"connections,omitempty"`
	RoundTrip   string             `json:"round_trip,omitempty"` // to the store
	Keys        int                `json:"keys,omitempty"`       // in the store
	PerSecond   float64            `json:"per_second,omitempty"`
	ServerCPU   float64            `json:"server_cpu_us,omitempty"` // microseconds of a request
	StoreCPU    float64            `json:"store_cpu_us,omitempty"`
	P50         float64            `json:"p50_us,omitempty"`
	P99         float64            `json:"p99_us,omitempty"`
	Ratios      map[string]Ratio   `json:"ratios,omitempty"` // to other variants, by their names
	Values      map[string]float64 `json:"values,omitempty"` // measured by this suite only
}

// CPU returns the CPU time of a request: the server's and the store's.
func (r Row) CPU() float64 { return r.ServerCPU + r.StoreCPU }

// Ratio compares two variants: medians of the ratios of each round.
type Ratio struct {
	PerSecond float64 `json:"per_second"`
	Low       float64 `json:"low"`  // lower quartile of PerSecond
	High      float64 `json:"high"` // upper quartile
	CPU       float64 `json:"cpu,omitempty"`
}

// Read reads results; there are none if the file does not exist.
func Read(file string) (Results, error) {
	r := Results{}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(data, &r)
	return r, err
}

// Write writes results.
func (r Results) Write(file string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
