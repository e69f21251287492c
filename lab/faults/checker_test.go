package faults_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// good is an operation of two attempts that nothing is wrong with.
func good() *operation {
	return &operation{
		op: "op",
		calls: []call{
			{status: 201, sum: [16]byte{1}},
			{status: 201, sum: [16]byte{1}, replayed: true},
			{status: 422, code: "key-reused", other: true},
			{status: 201, sum: [16]byte{1}, replayed: true, audit: true},
		},
		effects: []effect{{2, "b"}},
		holders: map[string]*holder{
			"a": {owner: "a", attempt: 1, from: 100, until: 200},
			"b": {owner: "b", attempt: 2, from: 201, until: 300, end: 250, completed: true},
		},
		record: "b",
	}
}

func TestTheCheckerKnowsUnconfirmedReplays(t *testing.T) {
	t.Parallel()
	o := good()
	o.calls[1].sum[3] = 7
	if o.unconfirmed(check(o, recoverable)) {
		t.Error("unconfirmed, and no completion failed")
	}
	o.holders["a"].end = 190
	if !o.unconfirmed(check(o, recoverable)) {
		t.Error("want the replay of a completion that was not confirmed")
	}
	o.holders["a"].completed = true
	if o.unconfirmed(check(o, recoverable)) {
		t.Error("a completion that was confirmed is lost, which is a violation")
	}
}

func TestTheCheckerFindsEachViolation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		preset preset
		spoil  func(*operation)
		want   string // the rule; empty: nothing
	}{
		"nothing":                   {transactional, func(*operation) {}, ""},
		"nothing, at most once":     {atMostOnce, func(*operation) {}, ""},
		"a call without an answer":  {recoverable, func(o *operation) { o.calls[1] = call{err: errors.New("reset")} }, ruleProgress},
		"an answer that is not one": {recoverable, func(o *operation) { o.calls[1].status = 503 }, ruleProgress},
		"unknown, recoverable":      {recoverable, func(o *operation) { o.calls[1] = call{status: 409, code: "outcome-unknown"} }, ruleProgress},
		"unknown, at most once":     {atMostOnce, func(o *operation) { o.calls[1] = call{status: 409, code: "outcome-unknown"} }, ""},
		"another replay":            {recoverable, func(o *operation) { o.calls[1].sum[3] = 7 }, "G2"},
		"another first answer":      {recoverable, func(o *operation) { o.calls[0].sum[3] = 7 }, "G2"},
		"another unrecorded answer": {recoverable, func(o *operation) { o.calls[0].sum[3], o.calls[0].unrecorded = 7, true }, ""},
		"a key that is not bound":   {recoverable, func(o *operation) { o.calls[2].status, o.calls[2].code = 201, "" }, "G6"},
		"the key is another's":      {recoverable, func(o *operation) { o.calls[1] = call{status: 422, code: "key-reused"} }, "G6"},
		"a key that was free": {atMostOnce, func(o *operation) {
			o.calls = []call{{status: 409, code: "outcome-unknown"}, {status: 201, other: true}, {status: 422, code: "key-reused"}}
		}, ""},
		"a run after the answer":     {recoverable, func(o *operation) { o.calls[3].replayed = false }, "G7"},
		"overlapping holders":        {recoverable, func(o *operation) { o.holders["a"].until = 230 }, "G1"},
		"a holder that ended":        {recoverable, func(o *operation) { o.holders["a"].until, o.holders["a"].end = 230, 190 }, ""},
		"two completions":            {recoverable, func(o *operation) { o.holders["a"].completed = true }, "G3"},
		"a run without a claim":      {recoverable, func(o *operation) { o.effects[0].owner = "c" }, "G5"},
		"two runs of one attempt":    {recoverable, func(o *operation) { o.effects = append(o.effects, o.effects[0]) }, "G5"},
		"two effects, recoverable":   {recoverable, func(o *operation) { o.effects = append(o.effects, effect{1, "a"}) }, ""},
		"two effects, at most once":  {atMostOnce, func(o *operation) { o.effects = append(o.effects, effect{1, "a"}) }, "at most once"},
		"two effects, transactional": {transactional, func(o *operation) { o.effects = append(o.effects, effect{1, "a"}) }, "G4"},
		"no effect, transactional":   {transactional, func(o *operation) { o.effects = nil }, "G4"},
		"no effect, recoverable":     {recoverable, func(o *operation) { o.effects = nil }, "effects"},
		"another's effect":           {transactional, func(o *operation) { o.effects[0].owner = "a" }, "G4"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := good()
			tt.spoil(o)
			var rules []string
			for _, v := range check(o, tt.preset) {
				rules = append(rules, v.rule)
			}
			if got := strings.Join(slices.Compact(rules), ", "); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}
