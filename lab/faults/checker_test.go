package faults_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// good is an operation of two attempts without a violation.
func good() *operation {
	return &operation{
		op: "op",
		calls: []call{
			{began: 90, ended: 260, status: 201, sum: [16]byte{1}},
			{began: 230, ended: 280, status: 201, sum: [16]byte{1}, replayed: true},
			{began: 300, ended: 310, status: 422, code: "key-reused", other: true},
			{began: 400, ended: 410, status: 201, sum: [16]byte{1}, replayed: true, audit: true},
		},
		effects: []effect{{2, "b"}},
		holders: map[string]*holder{
			"a": {owner: "a", attempt: 1, asked: 95, from: 100, until: 200},
			"b": {owner: "b", attempt: 2, asked: 199, from: 201, until: 300, end: 250, completed: true},
		},
		record: "b",
	}
}

// rulesOf returns the rules that are broken, each once.
func rulesOf(found []violation) string {
	var rules []string
	for _, v := range found {
		rules = append(rules, v.rule)
	}
	return strings.Join(slices.Compact(rules), ", ")
}

// The response of an attempt whose completion was not confirmed may be lost after it was
// replayed. A confirmed response, or the first one, may not.
func TestTheCheckerKnowsUnconfirmedReplays(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil func(*operation)
		want  string // the rule that is broken without the responses that were not confirmed
	}{
		"replayed, lost, and run again for another": {func(*operation) {}, ""},
		"replayed, lost, and run again at the end": {func(o *operation) {
			o.calls = slices.Delete(o.calls, 1, 3)
			o.calls[1].replayed = false
		}, ""},
		"the completion was confirmed":       {func(o *operation) { o.holders["a"].completed = true }, "G2, G7, G3"},
		"the first answer":                   {func(o *operation) { o.calls[0].replayed = false }, "G2, G7"},
		"an attempt that is not known":       {func(o *operation) { o.calls[0].fence = 9 }, "G2, G7"},
		"run again after a confirmed answer": {func(o *operation) { o.calls[3].replayed, o.calls[3].sum[0] = false, 3 }, "G7"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := good()
			o.calls[0] = call{began: 120, ended: 192, status: 201, sum: [16]byte{2}, replayed: true, fence: 1}
			o.holders["a"].fence, o.holders["a"].end = 1, 190
			tt.spoil(o)
			if len(check(o, recoverable)) == 0 {
				t.Error("nothing is wrong with all answers")
			}
			if got := rulesOf(check(o.confirmed(), recoverable)); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheCheckerFindsEachViolation(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		preset preset
		spoil  func(*operation)
		want   string // the rule; empty: none
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
		"a key that was free, of another that died": {atMostOnce, func(o *operation) {
			o.calls = []call{{status: 409, code: "outcome-unknown"}, {began: 91, status: 409, code: "outcome-unknown", other: true}, {status: 422, code: "key-reused"}}
		}, ""},
		"a key that was claimed, for another": {atMostOnce, func(o *operation) {
			o.calls = []call{{status: 409, code: "outcome-unknown"}, {began: 96, status: 409, code: "outcome-unknown", other: true}}
		}, "G6"},
		"a run after the answer":     {recoverable, func(o *operation) { o.calls[3].replayed = false }, "G7"},
		"that is not recorded":       {recoverable, func(o *operation) { o.calls[3].replayed, o.calls[3].unrecorded = false, true }, "G7"},
		"a run beside the answer":    {recoverable, func(o *operation) { o.calls[1].replayed = false }, ""},
		"a claim after the answer":   {recoverable, func(o *operation) { o.holders["c"] = &holder{owner: "c", asked: 270, from: 271, until: 300} }, "G7"},
		"a claim heard of late":      {recoverable, func(o *operation) { o.holders["c"] = &holder{owner: "c", asked: 255, from: 271, until: 300} }, ""},
		"overlapping holders":        {recoverable, func(o *operation) { o.holders["a"].until = 230 }, "G1"},
		"a claim answered too late":  {recoverable, func(o *operation) { o.holders["c"] = &holder{owner: "c", asked: 199, from: 240, until: 230} }, ""},
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
			if got := rulesOf(check(o, tt.preset)); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}
